# The service in a container. Its data is in /data: mount a volume there.
#
#   docker build -t molrun .
#   docker run --init -p 8080:8080 -v molrun:/data molrun
#   docker exec CONTAINER molrun key create --organization lab --email ann@lab.example
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X molrun/app/cli.version=${VERSION}" -o /molrun . \
 && mkdir /data && chmod 700 /data

# The base image has a shell, so that sites can add programs for their algorithms.
FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin molrun
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
