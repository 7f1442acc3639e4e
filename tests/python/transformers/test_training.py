"""Trainer and PEFT on models with simplicial and with converted layers."""

import pytest
import torch
from tiny_models import build, tokens, transformers

from nsimplex.nn import HigherOrderPart
from nsimplex.transformers import convert, order_shares

MODELS = ["simplicial", "converted"]


def model_of(kind):
    if kind == "simplicial":
        return build("simplicial", gain=2.0)
    return convert(build("llama", gain=2.0), every=2, window=(4, 9))


class Texts(torch.utils.data.Dataset):
    """The same few texts again and again."""

    def __len__(self):
        return 64

    def __getitem__(self, i):
        ids = tokens(1, 12, i % 4)[0]
        return dict(input_ids=ids, labels=ids)


@pytest.mark.parametrize("kind", MODELS)
def test_the_trainer_learns_saves_and_resumes(kind, tmp_path):
    pytest.importorskip("accelerate")

    def trainer(model, steps):
        options = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            max_steps=steps,
            per_device_train_batch_size=4,
            learning_rate=5e-3,
            lr_scheduler_type="constant",
            gradient_checkpointing=True,
            save_steps=6,
            logging_steps=3,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            seed=1,
        )
        return transformers.Trainer(model=model, args=options, train_dataset=Texts())

    whole = trainer(model_of(kind), 12)
    whole.train()
    losses = [each["loss"] for each in whole.state.log_history if "loss" in each]
    assert losses[-1] < 0.8 * losses[0]
    resumed = trainer(model_of(kind), 12)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-6"))
    torch.testing.assert_close(
        resumed.model.state_dict(), whole.model.state_dict(), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("kind", MODELS)
def test_lora_trains_its_matrices_alone_and_merges(kind, tmp_path):
    peft = pytest.importorskip("peft")
    model, ids = model_of(kind), tokens()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    options = dict(modules_to_save=["higher"]) if kind == "converted" else {}
    config = peft.LoraConfig(target_modules=["q_proj", "k_proj", "v_proj"], r=2, **options)
    tuned = peft.get_peft_model(model, config)
    optimizer = torch.optim.AdamW((w for w in tuned.parameters() if w.requires_grad), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        tuned(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
    if kind == "converted":
        (moved,) = {
            (part.order_bias != 0).any().item()
            for part in tuned.modules()
            if isinstance(part, HigherOrderPart) and part.order_bias.requires_grad
        }
        assert moved and len(order_shares(tuned, ids)) == 2
    with torch.no_grad():
        expected = tuned(input_ids=ids).logits
        tuned.save_pretrained(tmp_path)
        merged = tuned.merge_and_unload()
        torch.testing.assert_close(merged(ids).logits, expected, rtol=1e-3, atol=1e-4)
    after = merged.state_dict()
    assert after.keys() == before.keys()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    names = ("q_proj", "k_proj", "v_proj", "higher") if options else ("q_proj", "k_proj", "v_proj")
    assert changed and all(any(own in name for own in names) for name in changed)
