#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that building and testing Atoll needs
# and that are not there yet. Quick when nothing is missing. Go itself is not
# installed: the version in go.mod is newer than most distributions carry.
set -euo pipefail

# One line a need: the program to look for, the package that brings it.
needs="
make                make
gcc                 gcc
git                 git
curl                curl
jq                  jq
flock               util-linux
ip                  iproute2
iptables            iptables
newuidmap           uidmap
dockerd             docker.io
containerd          containerd
runc                runc
podman              podman
conmon              conmon
mmdebstrap          mmdebstrap
busybox             busybox-static
bwrap               bubblewrap
mkfs.btrfs          btrfs-progs
patch               patch
qemu-aarch64-static qemu-user-static
bash                bash
systemd-analyze     systemd
/usr/sbin/nft       nftables
unshare             util-linux
ip                  iproute2
nginx               nginx-light
promtool            prometheus
tmux                tmux
ssh                 openssh-client
rsync               rsync
/usr/share/doc/libnss-wrapper                        libnss-wrapper
npm                 npm
gpg                 gpg
wget                wget
ssh                 openssh-client
javac               default-jdk-headless
musl-gcc            musl-tools
chromium-headless-shell chromium-headless-shell
/usr/bin/pip3                                       python3-pip
/usr/bin/mypy                                       mypy
/usr/bin/cargo                                      cargo
/usr/sbin/sshd                                      openssh-server
/usr/include/stdlib.h                               libc6-dev
/usr/include/seccomp.h                              libseccomp-dev
/usr/lib/podman/netavark                            netavark
/usr/share/keyrings/debian-archive-keyring.gpg      debian-archive-keyring
/etc/ssl/certs/ca-certificates.crt                  ca-certificates
"

# Looked for after the rest: some releases ship the docker client inside
# docker.io, some apart from it.
late_needs="
docker              docker-cli
"

have() { if [[ $1 == /* ]]; then [[ -e $1 ]]; else command -v "$1" >/dev/null; fi; }

missing() {
	while read -r program package; do
		[[ -z $program ]] || have "$program" || echo "$package"
	done <<<"$1" | sort -u
}

install() {
	local packages=("$@")
	if ((${#packages[@]} == 0)); then return; fi
	if ! command -v apt-get >/dev/null; then
		echo "deps: missing: ${packages[*]}; install them with your package manager" >&2
		exit 1
	fi
	local sudo=()
	if ((EUID != 0)); then sudo=(sudo); fi
	local apt=("${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
	echo "deps: installing ${packages[*]}" >&2
	# Package lists may be absent or stale: refresh them only when it is needed.
	"${apt[@]}" install -y --no-install-recommends "${packages[@]}" >/dev/null 2>&1 && return
	"${apt[@]}" update
	"${apt[@]}" install -y --no-install-recommends "${packages[@]}" >/dev/null
}

# A system administrator's directories are not in every user's PATH.
PATH=$PATH:/usr/sbin:/sbin
for table in "$needs" "$late_needs"; do
	mapfile -t packages < <(missing "$table")
	install "${packages[@]}"
done
