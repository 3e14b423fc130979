# The image that pods of sandboxes take the guest from (kubernetes.guestImage).
FROM scratch
ARG TARGETARCH=amd64
COPY internal/runtime/guestbin/bin/atoll-guest-linux-${TARGETARCH} /guest
ENTRYPOINT ["/guest"]
