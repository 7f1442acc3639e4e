"""Stand-ins for the packages wandb and mlflow, with the signatures of the real ones. They add what
they are called with to the file that RECORDED names."""

import json

RECORD = """
import json, os
def record(*what):
    with open(os.environ["RECORDED"], "a") as file:
        file.write(json.dumps(what) + "\\n")
"""
WANDB = """
run = None
class Settings:
    def __init__(self, *, silent=False):
        pass
class Run:
    def __init__(self, id):
        self.id = id or "w1"
    def define_metric(self, name, step_metric=None, step_sync=None, hidden=None, summary=None):
        record("wandb.define_metric", name, step_metric)
    def log(self, data, step=None, commit=None):
        if os.environ.get("BROKEN") == "wandb":
            raise RuntimeError("no room left\\nsecond line")
        record("wandb.log", data)
    def finish(self, exit_code=None):
        record("wandb.finish")
def init(*, entity=None, project=None, dir=None, id=None, name=None, resume=None, settings=None):
    record("wandb.init", os.path.basename(dir), id, name, resume)
    return Run(id)
"""
MLFLOW = """
class Info:
    run_id = "m1"
class ActiveRun:
    info = Info
def active_run():
    return ActiveRun if os.environ.get("ACTIVE") else None
def start_run(run_id=None, experiment_id=None, run_name=None, nested=False):
    record("mlflow.start_run", run_id, run_name)
    return ActiveRun
def log_metrics(metrics, step=None, synchronous=None, run_id=None, timestamp=None):
    record("mlflow.log_metrics", metrics, step)
def end_run(status="FINISHED"):
    record("mlflow.end_run", status)
"""


def write_stand_ins(folder):
    """Both packages, in a folder for sys.path."""
    folder.mkdir(parents=True)
    (folder / "wandb.py").write_text(RECORD + WANDB)
    (folder / "mlflow.py").write_text(RECORD + MLFLOW)
    return folder


def calls(file, name):
    """What a function was called with, call by call."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [row[1:] for row in rows if row[0] == name]
