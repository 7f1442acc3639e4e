# Three images:
#   docker build -t nsimplex .                      the command line and the package, for a CPU
#   docker build --target wheel --output dist .     only the wheel, in dist/
#   docker build --target base .                    what a development container starts from (.devcontainer)
# --build-arg TORCH="2.11 2.12 2.14": the wheel serves these versions of torch, too.

FROM debian:bookworm-slim AS base
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git make python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /nsimplex

FROM base AS build
COPY . .
RUN tools/bootstrap
ARG TORCH=""
RUN mkdir /torch \
    && for minor in $TORCH; do \
         python3 -m venv /torch/$minor \
         && tools/bootstrap torch /torch/$minor/bin/python "$minor.*" || exit 1; \
       done
RUN make wheel TORCH="$(echo $(find /torch -path '*/bin/python'))"

FROM scratch AS wheel
COPY --from=build /nsimplex/dist /

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home nsimplex
COPY --from=build /nsimplex/dist /dist
COPY --from=build /nsimplex/tools /dist/tools
RUN export PIP_NO_CACHE_DIR=1 \
    && python3 -m venv /opt/nsimplex \
    && /dist/tools/bootstrap torch /opt/nsimplex/bin/python \
    && /opt/nsimplex/bin/python -m pip install /dist/*.whl \
    && rm -rf /dist
ENV PATH=/opt/nsimplex/bin:/usr/local/bin:/usr/bin:/bin
USER nsimplex
WORKDIR /home/nsimplex
ENTRYPOINT ["nsimplex"]
