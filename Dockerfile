# The service in a container. Its data is in /data; mount a volume there.
#
#   docker build -t molrun .
#   docker run --init -p 8080:8080 -v molrun:/data molrun
#   docker exec CONTAINER molrun key create --organization lab --email ann@lab.example
#
# Jobs end with the container; those whose algorithm has retries are retried in the next one.
# Docker's seccomp filter prevents bubblewrap from running jobs in a sandbox. To allow it, use
# --security-opt seccomp=unconfined --security-opt systempaths=unconfined. Without these options,
# only the container confines jobs; `molrun doctor` shows the isolation in force.
# web/deploy/compose.yaml runs the image behind nginx with HTTPS.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X molrun/app/cli.version=${VERSION:-$(.ci/version)}" -o /molrun . \
 && mkdir /data && chmod 700 /data

# The base image has a shell, so that sites can add programs for their algorithms.
FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin molrun
COPY --from=build /molrun /usr/local/bin/molrun
COPY --from=build --chown=molrun:molrun /data /data
USER molrun
ENV MOLRUN_DATA=/data MOLRUN_LISTEN=:8080
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=10s --start-period=5s CMD ["molrun", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["molrun"]
CMD ["serve", "--init"]
