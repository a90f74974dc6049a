# A node agent: torch, and bubblewrap to keep model code apart from the node.
# CPU by default; TORCH=cu130 takes torch's own build for CUDA 13.0 (see docker/README.md).
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap=0.8.* libseccomp2=2.5.* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home stageflow \
    && install -d -o stageflow -g stageflow /state /shared
WORKDIR /opt/stageflow
COPY pyproject.toml constraints.txt README.md stageflow.py docker/worker.lock ./
COPY app app
COPY backend backend
COPY workers workers
COPY migrations migrations
ARG TORCH=cpu
RUN pip install --no-cache-dir --no-deps --require-hashes --requirement worker.lock \
    && pip install --no-cache-dir --index-url "https://download.pytorch.org/whl/${TORCH}" torch==2.13.0 \
    && pip install --no-cache-dir --constraint constraints.txt --no-deps --editable .

USER 10001
# hadolint ignore=DL3064
ENV STAGEFLOW_HOME=/state \
    STAGEFLOW_SECRETS=/run/secrets \
    PYTHONUNBUFFERED=1
VOLUME /state
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-m", "app.health", "agent"]
CMD ["stageflow", "worker"]
