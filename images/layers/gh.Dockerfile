# Layer gh: GitHub's command line, from Debian's packages. What it goes on
# decides the user (FINAL_USER), who is the same afterwards.
USER root
RUN set -eu; \
    if command -v gh >/dev/null; then exit 0; fi; \
    command -v apt-get >/dev/null || { echo "layer gh needs an image with apt-get" >&2; exit 1; }; \
    export DEBIAN_FRONTEND=noninteractive; \
    apt-get update; \
    apt-get install -y --no-install-recommends ca-certificates git gh; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
USER ${FINAL_USER}
