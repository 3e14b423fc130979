#!/usr/bin/env bash
# The engines that the tests run on: a Docker daemon and a Podman service of our
# own, beside whatever else this machine runs, with the images the tests need.
#
#   scripts/test-engine.sh up       install, start, load images; quick when done
#   scripts/test-engine.sh down     stop what `up` started (images are kept)
#   scripts/test-engine.sh status   what runs; exit 1 unless all of it does
#   scripts/test-engine.sh env      shell lines that point docker and tests here
#
# Everything lives in $ATOLL_TEST_ENGINE_DIR (default /var/tmp/atoll-test-engine):
# data, sockets, pid files, logs. It needs root.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
dir=${ATOLL_TEST_ENGINE_DIR:-/var/tmp/atoll-test-engine}
[[ $dir == /* ]] || dir=$PWD/$dir # the daemons need absolute paths
PATH=$PATH:/usr/sbin:/sbin

docker_sock=$dir/docker.sock
podman_sock=$dir/podman.sock
containerd_sock=$dir/containerd.sock

# Two engine directories must not share a bridge: its name and subnet come from
# the directory's.
tag=$(printf %s "$dir" | cksum | cut -d' ' -f1)
bridge=$(printf 'atoll%06x' $((tag & 0xffffff)))
subnet=10.213.$((tag % 256))
podman_bridge=$(printf 'atlpm%06x' $((tag & 0xffffff)))
podman_subnet=10.214.$((tag % 256))

base_image=atoll-base:bookworm
sandbox_image=openclaw-sandbox:bookworm-slim
tiny_image=atoll-test-tiny:latest
recipe_label=atoll.recipe # hash of what an image was made from

start_timeout=60 # seconds until a daemon must answer
stop_timeout=30  # seconds until a daemon that was asked to stop is killed

say() { echo "test-engine: $*" >&2; }
die() { say "$*"; exit 1; }
dk() { docker -H "unix://$docker_sock" "$@"; }
pm() { podman --remote --url "unix://$podman_sock" "$@"; }

# ---- daemons ---------------------------------------------------------------

# answers SOCKET: does an engine answer there? (The Docker API's own question.)
answers() { [[ $(curl -fsS -m 5 --unix-socket "$1" http://engine/_ping 2>/dev/null) == OK ]]; }
containerd_answers() { ctr --address "$containerd_sock" --connect-timeout 2s version >/dev/null 2>&1; }

# pid_of NAME: the process that we started as NAME, if it still runs. A pid file
# outlives its process, and the number may by now belong to someone else.
pid_of() {
	local pid
	pid=$(cat "$dir/$1.pid" 2>/dev/null) || return 1
	[[ -n $pid ]] && grep -qF "$dir" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}

# start NAME COMMAND…: in the background, in a session of its own, without our lock,
# and in a directory of its own: it outlives the one that it is started from.
start() {
	local name=$1
	shift
	(cd "$dir" && exec setsid "$@" </dev/null >>"$dir/$name.log" 2>&1 9>&-) &
	echo $! >"$dir/$name.pid"
}

# gone NAME: has it ended? Until a new process runs its program it cannot be
# recognised, so one look is not enough.
gone() {
	for _ in 1 2 3 4 5; do
		pid_of "$1" >/dev/null && return 1
		sleep 0.2
	done
}

# await NAME COMMAND…: until COMMAND succeeds, or NAME dies, or time is over.
await() {
	local name=$1 deadline=$((SECONDS + start_timeout))
	shift
	until "$@"; do
		gone "$name" && { tail -n 20 "$dir/$name.log" >&2; die "$name died; log: $dir/$name.log"; }
		((SECONDS < deadline)) || { tail -n 20 "$dir/$name.log" >&2; die "$name does not answer; log: $dir/$name.log"; }
		sleep 0.1
	done
}

stop() {
	local name=$1 pid deadline=$((SECONDS + stop_timeout))
	pid=$(pid_of "$name") || { rm -f "$dir/$name.pid"; return 0; }
	kill -TERM "$pid" 2>/dev/null || true
	while pid_of "$name" >/dev/null; do
		((SECONDS < deadline)) || { say "$name ($pid) ignores SIGTERM: killed"; kill -KILL "$pid" 2>/dev/null || true; }
		sleep 0.1
	done
	rm -f "$dir/$name.pid"
}

# A containerd of our own: dockerd would otherwise use the system's, and then
# share its containers with the system's dockerd.
containerd_up() {
	containerd_answers && return
	stop containerd
	cat >"$dir/containerd.toml" <<-TOML
		version = 2
		root = "$dir/containerd"
		state = "$dir/containerd-state"
		disabled_plugins = ["io.containerd.grpc.v1.cri"]
		[grpc]
		address = "$containerd_sock"
	TOML
	start containerd containerd --config "$dir/containerd.toml"
	await containerd containerd_answers
}

docker_up() {
	answers "$docker_sock" && return
	stop dockerd
	containerd_up
	bridge_up
	rm -f "$docker_sock"
	# A config file of our own, so that /etc/docker/daemon.json is not read.
	# iptables stays off: a daemon that manages the tables would set the
	# host's forwarding policy.
	cat >"$dir/daemon.json" <<-JSON
		{
		  "data-root": "$dir/docker",
		  "exec-root": "$dir/docker-exec",
		  "pidfile": "$dir/docker-own.pid",
		  "hosts": ["unix://$docker_sock"],
		  "containerd": "$containerd_sock",
		  "storage-driver": "overlay2",
		  "live-restore": false,
		  "bridge": "$bridge",
		  "iptables": false,
		  "ip6tables": false
		}
	JSON
	pid_of docker-own >/dev/null || rm -f "$dir/docker-own.pid"
	start dockerd dockerd --config-file "$dir/daemon.json"
	await dockerd answers "$docker_sock"
	say "docker answers at unix://$docker_sock"
}

podman_up() {
	answers "$podman_sock" && return
	stop podman
	rm -f "$podman_sock"
	mkdir -p "$dir/podman-networks"
	# runc and cgroupfs: crun refuses hosts with a mixed cgroup hierarchy, and
	# systemd may not be there. File locks: shared-memory locks have one name
	# per user, whatever the data root.
	cat >"$dir/containers.conf" <<-TOML
		[engine]
		runtime = "runc"
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		lock_type = "file"
		[engine.runtimes]
		runc = ["$(podman_runtime)"]
		[containers]
		log_driver = "k8s-file"
		[network]
		network_backend = "netavark"
		network_config_dir = "$dir/podman-networks"
	TOML
	[[ -e $dir/podman-networks/podman.json ]] || podman_network >"$dir/podman-networks/podman.json"
	start podman env CONTAINERS_CONF="$dir/containers.conf" podman \
		--root "$dir/podman" --runroot "$dir/podman-run" --tmpdir "$dir/podman-tmp" \
		--storage-driver overlay system service --time 0 "unix://$podman_sock"
	await podman answers "$podman_sock"
	say "podman answers at unix://$podman_sock"
}

# podman_runtime: the path of the runtime to give podman. Podman asks for a
# million open files and processes by itself; a root that lacks CAP_SYS_RESOURCE
# may not have them, and nothing in podman's configuration holds for requests
# that set any limit. There runc gets a front that lowers limits to the host's.
podman_runtime() {
	local cap_sys_resource=24 bounding
	bounding=$((16#$(sed -n 's/^CapBnd:\t*//p' /proc/self/status)))
	if ((bounding >> cap_sys_resource & 1)); then
		command -v runc
		return
	fi
	cat >"$dir/runc" <<-'SH'
		#!/bin/bash
		# runc with resource limits no higher than this host grants.
		lower() {
			local new
			new=$(jq -c --argjson nofile "$(ulimit -Hn)" --argjson nproc "$(ulimit -Hu)" '
				{RLIMIT_NOFILE: $nofile, RLIMIT_NPROC: $nproc} as $most |
				(if has("process") then .process else . end).rlimits |= (. // [] | map(
					($most[.type] // .hard) as $m | .hard = ([.hard, $m] | min) | .soft = ([.soft, .hard] | min)))' "$1") &&
				printf '%s' "$new" >"$1"
		}
		previous=
		for argument; do
			case $previous in
			--bundle | -b) lower "$argument/config.json" ;;
			--process | -p) lower "$argument" ;;
			esac
			previous=$argument
		done
		exec runc "$@"
	SH
	chmod +x "$dir/runc"
	echo "$dir/runc"
}

podman_network() {
	cat <<-JSON
		{
		  "name": "podman",
		  "id": "2f259bab93aaaaa2542ba43ef33eb990d0999ee1b9924b557b7be53c0b7a1bb9",
		  "driver": "bridge",
		  "network_interface": "$podman_bridge",
		  "created": "2024-01-01T00:00:00Z",
		  "subnets": [{"subnet": "$podman_subnet.0/24", "gateway": "$podman_subnet.1"}],
		  "ipv6_enabled": false,
		  "internal": false,
		  "dns_enabled": false,
		  "ipam_options": {"driver": "host-local"}
		}
	JSON
}

# ---- network ---------------------------------------------------------------

# The rules that let containers on our bridge reach out, and nothing else.
rules() {
	cat <<-RULES
		-t nat POSTROUTING -s $subnet.0/24 ! -o $bridge -j MASQUERADE
		-t filter FORWARD -i $bridge -j ACCEPT
		-t filter FORWARD -o $bridge -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
	RULES
}

bridge_up() {
	if ! ip link show "$bridge" >/dev/null 2>&1; then
		ip link add "$bridge" type bridge
		ip address add "$subnet.1/24" dev "$bridge"
	fi
	ip link set "$bridge" up
	while read -r _ table chain rule; do
		# shellcheck disable=SC2086 # a rule is several words
		iptables -w -t "$table" -C "$chain" $rule 2>/dev/null ||
			iptables -w -t "$table" -I "$chain" $rule ||
			say "no outside network on $bridge: iptables refused '$chain $rule'"
	done < <(rules)
}

bridge_down() {
	while read -r _ table chain rule; do
		# shellcheck disable=SC2086
		iptables -w -t "$table" -D "$chain" $rule 2>/dev/null || true
	done < <(rules)
	ip link delete "$bridge" 2>/dev/null || true
}

# ---- images ----------------------------------------------------------------

recipe_of() { cat "$@" | sha256sum | cut -c1-16; }

# made ENGINE IMAGE RECIPE: does the engine hold IMAGE, made from this recipe?
made() { [[ $("$1" image inspect -f "{{index .Config.Labels \"$recipe_label\"}}" "$2" 2>/dev/null) == "$3" ]]; }

tiny_rootfs() {
	local tree applet
	tree=$(mktemp -d "$dir/tiny.XXXXXX")
	mkdir -p "$tree"/{bin,dev,etc,home/sandbox,proc,root,run,sys,tmp,var/tmp,workspace}
	chmod 1777 "$tree/tmp" "$tree/var/tmp"
	install -m 755 "$(command -v busybox)" "$tree/bin/busybox"
	for applet in $(busybox --list); do
		[[ $applet == busybox ]] || ln -s busybox "$tree/bin/$applet"
	done
	printf '%s\n' root:x:0:0:root:/root:/bin/sh sandbox:x:1000:1000::/home/sandbox:/bin/sh >"$tree/etc/passwd"
	printf '%s\n' root:x:0: sandbox:x:1000: >"$tree/etc/group"
	chown 1000:1000 "$tree/home/sandbox"
	tar -C "$tree" -c . >"$dir/tiny.tar.new"
	mv "$dir/tiny.tar.new" "$dir/tiny.tar"
	rm -rf "$tree"
}

tiny_up() {
	local recipe
	recipe=$(declare -f tiny_rootfs | recipe_of - "$(command -v busybox)")
	made dk $tiny_image "$recipe" && made pm $tiny_image "$recipe" && [[ -e $dir/tiny.tar ]] && return
	tiny_rootfs
	dk import -c "LABEL $recipe_label=$recipe" -c 'ENV PATH=/bin' -c 'CMD ["/bin/sh"]' "$dir/tiny.tar" $tiny_image >/dev/null
	hand_over $tiny_image
	say "image $tiny_image is ready"
}

# hand_over IMAGE: from docker to podman, under the same short name.
hand_over() {
	dk save "$1" | pm load >/dev/null
	# Older podmans keep the name under localhost/, newer ones under docker.io/.
	pm image exists "$1" || die "podman did not take $1"
}

base_up() {
	local recipe=$1
	made dk $base_image "$recipe" && return
	say "making the base image from Debian packages (half a minute)"
	sh "$root/images/base/rootfs.sh" 2>"$dir/rootfs.log" |
		dk import -c "LABEL $recipe_label=$recipe" -c 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' -c 'CMD ["bash"]' - $base_image >/dev/null ||
		{ tail -n 20 "$dir/rootfs.log" >&2; die "no base image; log: $dir/rootfs.log"; }
}

sandbox_up() {
	local base recipe
	base=$(recipe_of "$root/images/base/rootfs.sh")
	recipe=$(recipe_of "$root/images/base/rootfs.sh" "$root/images/sandbox/Dockerfile")
	if ! made dk $sandbox_image "$recipe"; then
		base_up "$base"
		say "building $sandbox_image (a minute)"
		# The host's network, because it is the one that certainly works; the
		# classic builder, because it is in every engine.
		DOCKER_BUILDKIT=0 dk build --network host --build-arg BASE_IMAGE=$base_image --label "$recipe_label=$recipe" \
			-t $sandbox_image "$root/images/sandbox" >"$dir/build.log" 2>&1 ||
			{ tail -n 30 "$dir/build.log" >&2; die "no sandbox image; log: $dir/build.log"; }
	fi
	made pm $sandbox_image "$recipe" || hand_over $sandbox_image
}

# ---- verbs -----------------------------------------------------------------

# ready: everything that `up` provides is there.
ready() { answers "$docker_sock" && answers "$podman_sock"; }

up() {
	"$root/scripts/deps.sh"
	docker_up
	podman_up
	tiny_up
	sandbox_up
	say "ready: unix://$docker_sock and unix://$podman_sock"
}

down() {
	# Containers first: a daemon that stops leaves podman's running.
	answers "$podman_sock" && pm rm --force --all --time 0 >/dev/null 2>&1
	stop podman
	stop dockerd
	stop containerd
	unmount_all
	bridge_down
	ip link delete "$podman_bridge" 2>/dev/null || true
	rm -f "$docker_sock" "$podman_sock"
	say "stopped; images are kept in $dir"
}

# Daemons, above all killed ones, leave mounts; the last made is on top.
unmount_all() {
	awk -v below="$dir/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r mount; do
		umount --lazy "$mount" 2>/dev/null || true
	done
}

status() {
	local failed=0 engine
	for engine in docker podman; do
		if answers "$dir/$engine.sock"; then
			echo "$engine: running at unix://$dir/$engine.sock"
		else
			echo "$engine: not running"
			failed=1
		fi
	done
	return $failed
}

environment() {
	echo "export DOCKER_HOST=unix://$docker_sock"
	echo "export ATOLL_TEST_DOCKER_HOST=unix://$docker_sock"
	echo "export ATOLL_TEST_PODMAN_HOST=unix://$podman_sock"
}

# alone VERB: one `up` or `down` at a time in this directory.
alone() {
	((EUID == 0)) || die "needs root: run it with sudo"
	mkdir -p "$dir"
	exec 9>"$dir/lock"
	flock 9
	"$1"
}

case ${1:-} in
up | down) alone "$1" ;;
status) status ;;
env) environment ;;
*)
	sed -n '2,11p' "$0" | sed 's/^# \{0,1\}//' >&2
	exit 2
	;;
esac
