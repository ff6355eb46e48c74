# syntax=docker/dockerfile:1
# The controller's image for those who build with a container runtime. "make image" writes one without, and from nothing but the
# source: that one is reproducible, and it is the one that is released (docs/tasks/release.md). Both run the same.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=$(git describe --tags --always) \
#     --build-arg COMMIT=$(git rev-parse HEAD) -t tenon .
FROM --platform=$BUILDPLATFORM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH VERSION=unknown COMMIT=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -X github.com/tenon-sh/tenon/internal/version.linkedVersion=$VERSION -X github.com/tenon-sh/tenon/internal/version.linkedCommit=$COMMIT" \
    -o /tenon ./cmd/controller

# Certificates, the user nonroot (65532) and /tmp; no shell.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /tenon /tenon
USER 65532:65532
ENTRYPOINT ["/tenon", "controller"]
