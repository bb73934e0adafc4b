# A server of models, on CPUs. Build it in a clone, and mount folders of models:
#   docker build -t tg-mlc --build-arg TORCH="torch ..." .
#   docker run --rm -p 8000:8000 -v "$PWD/model:/models/model:ro" tg-mlc /models/model
FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# Arguments of pip that install a CPU wheel of torch, as PyTorch's page on installing it names them; without them, the
# wheel holds the libraries of CUDA, too, and the image takes several GB more.
ARG TORCH=torch
RUN python -m venv /opt/tg_mlc && /opt/tg_mlc/bin/pip install $TORCH
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY tg_mlc ./tg_mlc
RUN /opt/tg_mlc/bin/pip install ".[data,molecules,serve]" && find /opt/tg_mlc -name __pycache__ -prune -exec rm -r {} +

FROM python:3.12-slim
RUN useradd --create-home --uid 10001 server
COPY --from=build /opt/tg_mlc /opt/tg_mlc
ENV PATH=/opt/tg_mlc/bin:$PATH PYTHONUNBUFFERED=1
USER server
WORKDIR /home/server
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/ready')"]
ENTRYPOINT ["tg-mlc", "serve", "--host", "0.0.0.0"]
CMD ["/models/model"]
