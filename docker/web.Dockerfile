# The dashboard, the REST API and the command line: no torch, no model code.
FROM python:3.11-slim-bookworm

RUN useradd --uid 10001 --create-home stageflow \
    && install -d -o stageflow -g stageflow /state /shared
WORKDIR /opt/stageflow
COPY pyproject.toml constraints.txt README.md stageflow.py docker/web.lock ./
COPY app app
COPY backend backend
COPY workers workers
COPY migrations migrations
RUN pip install --no-cache-dir --require-hashes --requirement web.lock \
    && pip install --no-cache-dir --constraint constraints.txt --no-deps --editable .

USER 10001
# hadolint ignore=DL3064
ENV STAGEFLOW_HOME=/state \
    STAGEFLOW_HOST=0.0.0.0 \
    STAGEFLOW_SECRETS=/run/secrets \
    PYTHONUNBUFFERED=1
VOLUME /state
EXPOSE 8501
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-m", "app.health"]
CMD ["stageflow", "up", "--no-agent"]
