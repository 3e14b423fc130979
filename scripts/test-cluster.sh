#!/usr/bin/env bash
# The Kubernetes cluster that the tests run on: etcd, API server, controllers,
# scheduler and one kubelet (or two) with a containerd each, in a network
# namespace of their own, with the images the tests need.
#
#   scripts/test-cluster.sh up [--nodes N]   build, start, load images; quick when done
#   scripts/test-cluster.sh images           load the images and the filter of this tree again
#   scripts/test-cluster.sh load IMAGE…      load images of the test engine, by their full names
#   scripts/test-cluster.sh build            build the programs only
#   scripts/test-cluster.sh agent-sandbox    build the controller of agent-sandbox, which start and stop take then
#   scripts/test-cluster.sh stop NAME        stop one program (see status)
#   scripts/test-cluster.sh start NAME       start it again
#   scripts/test-cluster.sh kill-node N      end a node and all that runs on it at once
#   scripts/test-cluster.sh deny ADDRESS     let nothing from a pod through, as a plug-in that enforces a NetworkPolicy
#   scripts/test-cluster.sh allow ADDRESS    let it through again
#   scripts/test-cluster.sh down             stop all of it and remove its state
#   scripts/test-cluster.sh status           what runs; exit 1 unless all of it does
#   scripts/test-cluster.sh env              shell lines that point kubectl and tests here
#
# Everything lives in $ATOLL_TEST_CLUSTER_DIR (default /var/tmp/atoll-test-cluster),
# but for the built programs, which are kept in $ATOLL_KUBE_DIR (default
# /var/tmp/atoll-kube) by what they were built from. It needs root.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
dir=${ATOLL_TEST_CLUSTER_DIR:-/var/tmp/atoll-test-cluster}
built=${ATOLL_KUBE_DIR:-/var/tmp/atoll-kube}
[[ $dir == /* ]] || dir=$PWD/$dir
PATH=$PATH:/usr/sbin:/sbin
engine=$root/scripts/test-engine.sh

# Two clusters must not share a namespace, an address or a control group: their
# names come from the directory's.
tag=$(printf %s "$dir" | cksum | cut -d' ' -f1)
netns=$(printf 'atollk%06x' $((tag & 0xffffff)))
veth=$(printf 'atlk%06x' $((tag & 0xffffff)))
link=10.215.$((tag % 256)) # .1 is the host, .2 the cluster
api=https://$link.2:6443
service_ip=10.96.0.1
cgroup=$netns

sandbox_image=openclaw-sandbox:bookworm-slim
tiny_image=atoll-test-tiny:latest
pause_image=atoll-test-pause:latest
latest_guest=atoll-guest:latest

start_timeout=120 # seconds until a program must answer
stop_timeout=30   # seconds until a program that was asked to stop is killed

say() { echo "test-cluster: $*" >&2; }
die() { say "$*"; exit 1; }
kc() { "$dir/bin/kubectl" --kubeconfig "$dir/admin.kubeconfig" "$@"; }
nodes() { cat "$dir/nodes" 2>/dev/null || echo 1; }

# ---- programs --------------------------------------------------------------

# pid_of NAME: the process that we started as NAME, if it still runs. A pid file
# outlives its process, and the number may by now belong to someone else.
pid_of() {
	local pid
	pid=$(cat "$dir/$1.pid" 2>/dev/null) || return 1
	[[ -n $pid ]] && grep -qF "$dir/" "/proc/$pid/cmdline" 2>/dev/null && echo "$pid"
}

# launch NAME COMMAND…: in the background, in the cluster's network namespace, in a
# session of its own, without our lock. nsenter and not `ip netns exec`, which
# mounts a /sys without control groups.
launch() {
	local name=$1
	shift
	(cd "$dir" && exec setsid nsenter --net="/run/netns/$netns" "$@" </dev/null >>"$dir/$name.log" 2>&1 9>&-) &
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
	until "$@" >/dev/null 2>&1; do
		gone "$name" && { tail -n 20 "$dir/$name.log" >&2; die "$name died; log: $dir/$name.log"; }
		((SECONDS < deadline)) || { tail -n 20 "$dir/$name.log" >&2; die "$name does not answer; log: $dir/$name.log"; }
		sleep 0.2
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

# kill_node N: as if its power was cut.
kill_node() {
	local program pid
	for program in "kubelet$1" "containerd$1"; do
		pid=$(pid_of "$program") || continue
		kill -KILL "$pid" 2>/dev/null || true
	done
	signal_groups STOP "/node$1" # none is to see another end
	kill_groups "/node$1"
	kill_shims "$dir/node$1/"
}

# programs: the names that stop and start take, in the order of starting.
programs() {
	local n
	printf '%s\n' etcd apiserver controllers scheduler
	for ((n = 1; n <= $(nodes); n++)); do printf '%s\n' "containerd$n" "kubelet$n"; done
}

start() {
	[[ " $(programs | tr '\n' ' ')agent-sandbox " == *" $1 "* ]] || die "no program $1: $(programs | tr '\n' ' ')agent-sandbox"
	pid_of "$1" >/dev/null && return
	case $1 in
	agent-sandbox) start_agent_sandbox ;;
	etcd | apiserver | controllers | scheduler) "start_$1" ;;
	containerd* | kubelet*) "start_${1%[0-9]}" "${1##*[a-z]}" ;;
	esac
}

# ---- building --------------------------------------------------------------

kube_version() { sed -n 's/^\tk8s\.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$root/tools/kube/go.mod"; }

build_flags() {
	local version=$1 package=k8s.io/component-base/version minor=${1#v1.}
	echo "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*} -X $package.gitTreeState=clean"
}

# binary: the path of the programs, built unless they are there: the name of
# their directory is the hash of all that they are made from.
binary() {
	local flags key
	flags=$(build_flags "$(kube_version)")
	key=$( (cat "$root"/tools/kube/{go.mod,go.sum,main.go,pause/main.go} && echo "$flags" && cd "$root/tools/kube" && go env GOVERSION GOARCH) | sha256sum | cut -c1-16)
	mkdir -p "$built"
	if [[ ! -x $built/$key/kube || ! -x $built/$key/pause ]]; then
		say "building Kubernetes $(kube_version) (14 minutes of processor time when nothing is cached)"
		rm -rf "$built/$key.new"
		(cd "$root/tools/kube" && CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$built/$key.new/" . ./pause) >&2
		rm -rf "${built:?}/$key" && mv "$built/$key.new" "$built/$key"
	fi
	echo "$built/$key"
}

build() {
	local from
	exec 8>"$built.lock"
	flock 8
	from=$(binary)
	exec 8>&-
	mkdir -p "$dir/bin"
	for name in kubectl kubelet kube-apiserver kube-controller-manager kube-scheduler; do
		ln -sfn "$from/kube" "$dir/bin/$name"
	done
	ln -sfn "$from/pause" "$dir/bin/pause"
}

# agent_sandbox: the controller of kubernetes-sigs/agent-sandbox, built unless it is there.
agent_sandbox() {
	local key
	key=agent-sandbox-$( (cat "$root"/tools/agentsandbox/{go.mod,go.sum} && cd "$root/tools/agentsandbox" && go env GOVERSION GOARCH) | sha256sum | cut -c1-16)
	exec 8>"$built.lock"
	flock 8
	if [[ ! -x $built/$key/agent-sandbox-controller ]]; then
		say "building the controller of agent-sandbox (4 minutes of processor time when nothing is cached)"
		rm -rf "$built/$key.new"
		(cd "$root/tools/agentsandbox" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$built/$key.new/" sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller) >&2
		rm -rf "${built:?}/$key" && mv "$built/$key.new" "$built/$key"
	fi
	exec 8>&-
	mkdir -p "$dir/bin"
	ln -sfn "$built/$key/agent-sandbox-controller" "$dir/bin/agent-sandbox-controller"
}

# ---- certificates ----------------------------------------------------------

# certificate NAME SUBJECT [SUBJECT-ALT-NAMES]
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$2" \
		-keyout "$dir/pki/$1.key" -out "$dir/pki/$1.csr" 2>/dev/null
	openssl x509 -req -in "$dir/pki/$1.csr" -CA "$dir/pki/ca.crt" -CAkey "$dir/pki/ca.key" -CAcreateserial -days 3650 \
		-extfile <(echo "extendedKeyUsage=serverAuth,clientAuth"; [[ -z ${3:-} ]] || echo "subjectAltName=$3") -out "$dir/pki/$1.crt" 2>/dev/null
	kubeconfig "$1" >"$dir/$1.kubeconfig"
}

kubeconfig() {
	cat <<-YAML
		apiVersion: v1
		kind: Config
		current-context: test
		contexts: [{name: test, context: {cluster: test, user: $1}}]
		clusters: [{name: test, cluster: {server: "$api", certificate-authority-data: $(base64 -w0 "$dir/pki/ca.crt")}}]
		users: [{name: $1, user: {client-certificate-data: $(base64 -w0 "$dir/pki/$1.crt"), client-key-data: $(base64 -w0 "$dir/pki/$1.key")}}]
	YAML
}

certificates() {
	[[ -e $dir/pki/done ]] && return
	(umask 077 && mkdir -p "$dir/pki")
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=atoll-test-cluster \
		-keyout "$dir/pki/ca.key" -out "$dir/pki/ca.crt" 2>/dev/null
	openssl ecparam -name prime256v1 -genkey -noout -out "$dir/pki/sa.key"
	openssl ec -in "$dir/pki/sa.key" -pubout -out "$dir/pki/sa.pub" 2>/dev/null
	certificate apiserver /CN=kube-apiserver "IP:$link.2,IP:$service_ip,IP:127.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
	certificate admin /O=system:masters/CN=admin
	for n in 1 2; do certificate "node$n" "/O=system:nodes/CN=system:node:node$n"; done
	touch "$dir/pki/done"
}

# ---- network ---------------------------------------------------------------

inside() { nsenter --net="/run/netns/$netns" "$@"; }

network_up() {
	ip netns list | grep -qw "$netns" || ip netns add "$netns"
	inside ip link set lo up
	if ! ip link show "$veth" >/dev/null 2>&1; then
		ip link add "$veth" type veth peer name host netns "$netns"
		ip address add "$link.1/24" dev "$veth"
		inside ip address add "$link.2/24" dev host
	fi
	ip link set "$veth" up
	inside ip link set host up
	inside sysctl -qw net.ipv4.ip_forward=1
	# The API server's own Service, which is all that pods here need a proxy for.
	local rule="PREROUTING -d $service_ip -p tcp --dport 443 -j DNAT --to-destination $link.2:6443"
	# shellcheck disable=SC2086 # a rule is several words
	inside iptables -w -t nat -C $rule 2>/dev/null || inside iptables -w -t nat -A $rule
	# Pods reach servers of tests at the host's address, as this namespace.
	rule="POSTROUTING -s 10.77.0.0/16 -d $link.1 -j MASQUERADE"
	# shellcheck disable=SC2086
	inside iptables -w -t nat -C $rule 2>/dev/null || inside iptables -w -t nat -A $rule
}

deny() { inside iptables -w -I INPUT -s "$1" -j DROP && inside iptables -w -I FORWARD -s "$1" -j DROP; }

allow() { inside iptables -w -D INPUT -s "$1" -j DROP && inside iptables -w -D FORWARD -s "$1" -j DROP; }

# bridge_up N: the bridge of a node's pods, whose address is the node's. With a hardware
# address of its own: else it has the lowest of its pods' interfaces, and when that pod ends
# the others do not reach the node until their ARP entries expire.
bridge_up() {
	inside ip link show "node$1" >/dev/null 2>&1 || inside ip link add "node$1" type bridge
	inside ip link set "node$1" address "02:00:0a:4d:0$1:01"
	inside ip address replace "10.77.$1.1/24" dev "node$1"
	inside ip link set "node$1" up
}

network_down() {
	ip link delete "$veth" 2>/dev/null || true
	ip netns delete "$netns" 2>/dev/null || true
}

# ---- control plane ---------------------------------------------------------

start_etcd() {
	launch etcd etcd --data-dir "$dir/etcd" --unsafe-no-fsync --log-level warn \
		--listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
		--listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster default=http://127.0.0.1:2380
}

start_apiserver() {
	launch apiserver "$dir/bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
		--bind-address=0.0.0.0 --advertise-address="$link.2" --secure-port=6443 --endpoint-reconciler-type=none \
		--tls-cert-file="$dir/pki/apiserver.crt" --tls-private-key-file="$dir/pki/apiserver.key" --client-ca-file="$dir/pki/ca.crt" \
		--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --service-cluster-ip-range=10.96.0.0/16 \
		--service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$dir/pki/sa.pub" --service-account-signing-key-file="$dir/pki/sa.key" \
		--feature-gates=SizeBasedListCostEstimate=false --allow-privileged --kubelet-client-certificate="$dir/pki/admin.crt" --kubelet-client-key="$dir/pki/admin.key" --kubelet-preferred-address-types=InternalIP
}

start_controllers() {
	launch controllers "$dir/bin/kube-controller-manager" --kubeconfig="$dir/admin.kubeconfig" --leader-elect=false --secure-port=0 \
		--service-account-private-key-file="$dir/pki/sa.key" --root-ca-file="$dir/pki/ca.crt" \
		--controllers='*,-nodeipam,-route,-service-lb-controller' --node-monitor-grace-period="$(lost_after)"
}

start_scheduler() {
	launch scheduler "$dir/bin/kube-scheduler" --kubeconfig="$dir/admin.kubeconfig" --leader-elect=false --secure-port=0
}

start_agent_sandbox() {
	launch agent-sandbox "$dir/bin/agent-sandbox-controller" --kubeconfig="$dir/admin.kubeconfig" --extensions --leader-elect=false \
		--metrics-bind-address=0 --health-probe-bind-address=0
}

# lost_after: how long a node may be silent. With two, tests kill one and wait for
# that; alone, a busy machine must not lose its only node.
lost_after() { if (($(nodes) > 1)); then echo 12s; else echo 120s; fi; }

api_ready() { curl -fsS -m 5 --cacert "$dir/pki/ca.crt" "$api/readyz"; }

# ---- nodes -----------------------------------------------------------------

# cgroup_dirs N: a node's control group in every hierarchy of this machine.
cgroup_dirs() {
	local hierarchy
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo "/sys/fs/cgroup/$cgroup$1"
		return
	fi
	for hierarchy in /sys/fs/cgroup/*/; do echo "$hierarchy$cgroup$1"; done
}

cgroups_up() {
	local group
	for group in $(cgroup_dirs "/node$1"); do
		mkdir -p "$group"
		for file in cpuset.cpus cpuset.mems; do # empty in a new group of version 1, which then takes no process
			for below in "${group%/*}" "$group"; do
				[[ ! -e ${below%/*}/$file || -n $(<"$below/$file") ]] || cat "${below%/*}/$file" >"$below/$file"
			done
		done
	done
}

start_containerd() {
	local n=$1 node=$dir/node$1 cap_sys_resource=24 limited=false
	(((16#$(sed -n 's/^CapBnd:\t*//p' /proc/self/status)) >> cap_sys_resource & 1)) || limited=true
	mkdir -p "$node/cni"
	cat >"$node/containerd.toml" <<-TOML
		version = 2
		root = "$node/containerd"
		state = "$node/containerd-state"
		[grpc]
		address = "$node/containerd.sock"
		[plugins."io.containerd.grpc.v1.cri"]
		sandbox_image = "docker.io/library/$pause_image"
		disable_apparmor = true
		netns_mounts_under_state_dir = true
		# A root without CAP_SYS_RESOURCE may not lower a score.
		restrict_oom_score_adj = $limited
		[plugins."io.containerd.grpc.v1.cri".cni]
		bin_dir = "/usr/lib/cni"
		conf_dir = "$node/cni"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"
		[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
		SystemdCgroup = false
	TOML
	cat >"$node/cni/10-bridge.conflist" <<-JSON
		{"cniVersion": "1.0.0", "name": "node$n", "plugins": [
		  {"type": "bridge", "bridge": "node$n", "isGateway": true,
		   "ipam": {"type": "host-local", "dataDir": "$node/cni-addresses", "ranges": [[{"subnet": "10.77.$n.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	JSON
	touch "$dir/containerd$n.log"
	stat -c %s "$dir/containerd$n.log" >"$dir/containerd$n.began"
	launch "containerd$n" containerd --config "$node/containerd.toml"
}

# serves_kubelets N: after a crash containerd answers others before it has found its
# containers again, and a kubelet that comes earlier ends at once.
serves_kubelets() { grep -q 'Start streaming server' <(tail -c "+$(<"$dir/containerd$1.began")" "$dir/containerd$1.log"); }

ct() { ctr --address "$dir/node$1/containerd.sock" --namespace k8s.io --connect-timeout 2s "${@:2}"; }

start_kubelet() {
	local n=$1 node=$dir/node$1
	await "containerd$n" serves_kubelets "$n"
	mkdir -p "$node/kubelet"
	: >"$node/resolv.conf"
	cat >"$node/kubelet.yaml" <<-YAML
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		address: 10.77.$n.1
		authentication: {anonymous: {enabled: false}, x509: {clientCAFile: $dir/pki/ca.crt}}
		cgroupDriver: cgroupfs
		cgroupRoot: /$cgroup/node$n
		containerRuntimeEndpoint: unix://$node/containerd.sock
		enforceNodeAllocatable: []
		evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
		failCgroupV1: false
		failSwapOn: false
		healthzPort: 0
		imageGCHighThresholdPercent: 100 # images are loaded, never pulled
		imageGCLowThresholdPercent: 99
		maxPods: 250
		nodeLeaseDurationSeconds: 8
		nodeStatusUpdateFrequency: 2s
		podLogsDir: $node/logs
		podPidsLimit: 512
		resolvConf: $node/resolv.conf
	YAML
	launch "kubelet$n" "$dir/bin/kubelet" --config="$node/kubelet.yaml" --kubeconfig="$dir/node$n.kubeconfig" --root-dir="$node/kubelet" \
		--cert-dir="$node/kubelet/pki" --hostname-override="node$n" --node-ip="10.77.$n.1" --node-labels=atoll.dev/sandbox=true
}

node_ready() { [[ $(kc get node "node$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]]; }

node_up() {
	bridge_up "$1"
	cgroups_up "$1"
	start "containerd$1"
	await "containerd$1" ct "$1" version
	images "$1"
	start "kubelet$1"
}

# ---- images ----------------------------------------------------------------

dk() { docker "$@"; }

# made IMAGE PROGRAM PATH: an image of one static program, made by the test engine.
made() {
	local recipe=atoll.recipe hash
	hash=$(sha256sum <"$2" | cut -c1-16)
	[[ $(dk image inspect -f "{{index .Config.Labels \"$recipe\"}}" "$1" 2>/dev/null) == "$hash" ]] && return
	tar -c --mode 0755 --owner 0 --group 0 --transform "s,.*,${3#/}," -C "$(dirname "$(readlink -f "$2")")" "$(basename "$(readlink -f "$2")")" |
		dk import -c "LABEL $recipe=$hash" -c "ENTRYPOINT [\"$3\"]" - "$1" >/dev/null
}

# load N IMAGE: into a node, under its short name and by its digest, unless it is there.
load() {
	local n=$1 image=$2 name=docker.io/library/$2 mark digest
	mark=$dir/node$n/images/${image//[:\/]/_}
	mkdir -p "${mark%/*}"
	[[ $(cat "$mark" 2>/dev/null) == "$(dk image inspect -f '{{.Id}}' "$image")" ]] && return
	dk save "$image" | ct "$n" images import - >/dev/null
	digest=$(ct "$n" images ls "name==$name" | awk 'NR == 2 { print $3 }')
	ct "$n" images tag --force "$name" "${name%:*}@$digest" >/dev/null
	dk image inspect -f '{{.Id}}' "$image" >"$mark"
}

# load_named IMAGE…: into every node. Layers that they share are copied once.
load_named() {
	local n
	(($# > 0)) || die "which images?"
	engine_env
	for ((n = 1; n <= $(nodes); n++)); do dk save "$@" | ct "$n" images import - >/dev/null; done
}

guest() { echo "$root/internal/runtime/guestbin/bin/atoll-guest-linux-$(go env GOARCH)"; }

# guest_image: the image of this tree's guest. Trees that share a cluster have one each.
guest_image() { echo "${latest_guest%:*}:$(sha256sum <"$(guest)" | cut -c1-16)"; }

# images N: the images that a node holds, for pods there never pull, and the system call
# filter of sandboxes.
images() {
	(cd "$root" && GOFLAGS=-trimpath CGO_ENABLED=0 go run ./cmd/atoll-seccomp "$dir/node$1/kubelet/seccomp")
	made "$pause_image" "$dir/bin/pause" /pause
	made "$(guest_image)" "$(guest)" /guest
	dk tag "$(guest_image)" "$latest_guest"
	for image in "$pause_image" "$tiny_image" "$sandbox_image" "$(guest_image)" "$latest_guest"; do load "$1" "$image"; done
}

images_all() {
	local n
	engine_env
	for ((n = 1; n <= $(nodes); n++)); do images "$n"; done
}

# engine_env: the Docker engine that has the images; started when it is not there.
engine_env() {
	[[ -e $(guest) ]] || make -C "$root" -s guest >&2
	"$engine" status >/dev/null || "$engine" up
	eval "$("$engine" env)"
}

# ---- verbs -----------------------------------------------------------------

packages() {
	local missing=()
	command -v etcd >/dev/null || missing+=(etcd-server)
	command -v containerd >/dev/null || missing+=(containerd)
	command -v runc >/dev/null || missing+=(runc)
	command -v openssl >/dev/null || missing+=(openssl)
	[[ -x /usr/lib/cni/bridge ]] || missing+=(containernetworking-plugins)
	((${#missing[@]} == 0)) && return
	say "installing ${missing[*]}"
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
	"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null 2>&1 && return
	"${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null
}

up() {
	local n want=1
	if [[ ${1:-} == --nodes ]]; then want=${2:?how many nodes}; fi
	[[ $want == [12] ]] || die "one node or two"
	(($(nodes) >= want)) && [[ -e $dir/nodes ]] || echo "$want" >"$dir/nodes"
	packages
	build
	engine_env
	certificates
	network_up
	start etcd
	start apiserver
	await apiserver api_ready
	start controllers
	start scheduler
	for ((n = 1; n <= $(nodes); n++)); do node_up "$n"; done
	for ((n = 1; n <= $(nodes); n++)); do await "kubelet$n" node_ready "$n"; done
	await controllers kc get serviceaccount default
	say "ready: KUBECONFIG=$dir/admin.kubeconfig ($api, $(nodes) node(s))"
}

down() {
	local program n
	for program in agent-sandbox $(programs | grep kubelet); do stop "$program"; done
	kill_groups ""
	kill_shims "$dir/node"
	for program in $(programs | tac); do stop "$program"; done
	unmount_all
	network_down
	cgroups_down
	find /var/log/containers -maxdepth 1 -lname "$dir/*" -delete 2>/dev/null || true
	find "$dir" -mindepth 1 -maxdepth 1 ! -name lock ! -name '*.log' -exec rm -rf {} +
	say "stopped; logs are kept in $dir, programs in $built"
}

# signal_groups SIGNAL BELOW: to all that runs in our control groups.
signal_groups() {
	local pid
	cgroup_dirs "$2" | while read -r group; do [[ ! -d $group ]] || find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null; done |
		sort -u | while read -r pid; do kill "-$1" "$pid" 2>/dev/null || true; done
}

kill_groups() {
	for _ in 1 2 3; do
		signal_groups KILL "$1"
		sleep 0.2
	done
}

# kill_shims PATH: the shims of containerd with that path, which are in no group of ours.
kill_shims() {
	local pid
	{ grep -lsF "$1" /proc/[0-9]*/cmdline || true; } | while read -r cmdline; do
		pid=${cmdline//[^0-9]/}
		[[ $(cat "/proc/$pid/comm" 2>/dev/null) != containerd-shim* ]] || kill -KILL "$pid" 2>/dev/null || true
	done
}

cgroups_down() {
	local group
	for group in $(cgroup_dirs ""); do
		[[ ! -d $group ]] || find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null || say "left: $group"
	done
}

unmount_all() {
	awk -v below="$dir/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | tac | while read -r mount; do
		umount --lazy "$mount" 2>/dev/null || true
	done
}

status() {
	local failed=0 program n
	[[ -e $dir/nodes ]] || { echo "not up"; return 1; }
	for program in $(programs); do
		if pid_of "$program" >/dev/null; then echo "$program: running"; else echo "$program: not running"; failed=1; fi
	done
	for ((n = 1; n <= $(nodes); n++)); do
		if node_ready "$n" 2>/dev/null; then echo "node$n: ready"; else echo "node$n: not ready"; failed=1; fi
	done
	return $failed
}

environment() {
	echo "export KUBECONFIG=$dir/admin.kubeconfig"
	echo "export ATOLL_TEST_KUBECONFIG=$dir/admin.kubeconfig"
	echo "export ATOLL_TEST_KUBECTL=$dir/bin/kubectl"
	echo "export ATOLL_TEST_CLUSTER_DIR=$dir"
	echo "export ATOLL_TEST_CLUSTER_HOST=$link.1" # this machine, as pods reach it
	[[ ! -e $(guest) ]] || echo "export ATOLL_TEST_GUEST_IMAGE=$(guest_image)"
}

# alone VERB…: one that changes something at a time in this directory.
alone() {
	((EUID == 0)) || die "needs root: run it with sudo"
	mkdir -p "$dir"
	exec 9>"$dir/lock"
	flock 9
	"$@"
}

case ${1:-} in
up | down | start | stop) alone "$@" ;;
images) alone images_all ;;
kill-node) alone kill_node "${2:?which node}" ;;
deny | allow) alone "$1" "${2:?which address}" ;;
load) alone load_named "${@:2}" ;;
build) alone build ;;
agent-sandbox) alone agent_sandbox ;;
status) status ;;
env) environment ;;
*)
	sed -n '2,23p' "$0" | sed 's/^# \{0,1\}//' >&2
	exit 2
	;;
esac
