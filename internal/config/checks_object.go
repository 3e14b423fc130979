package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/atoll-run/atoll/internal/config/textcheck"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// objectCheck looks at an object as a whole: at keys that depend on each other.
type objectCheck func(c *checker, at *path, n *node)

var objectChecks = map[reflect.Type][]objectCheck{
	reflect.TypeFor[file]():             {checkSecretUse, checkPools},
	reflect.TypeFor[egressFile]():       {warnFronting, warnLoopback},
	reflect.TypeFor[egressRule]():       {checkRuleKeys},
	reflect.TypeFor[secretFile]():       {checkSecretHosts},
	reflect.TypeFor[secretSourceFile](): {checkSecretSource},
	reflect.TypeFor[agentsFile]():       {checkOneRoster, checkIDs, checkOneDefault},
	reflect.TypeFor[agentFile]():        {checkAgentVisibility},
	reflect.TypeFor[toolsFile]():        {checkAllowOrAlso},
	reflect.TypeFor[agentToolsFile]():   {checkAllowOrAlso},
	reflect.TypeFor[toolListFile]():     {checkAllowOrAlso},
	reflect.TypeFor[sandboxFile]():      {checkBrowserJoin, checkYolo},
	reflect.TypeFor[dockerFile]():       {checkJoin, checkSwapCoversMemory},
	reflect.TypeFor[overlayFile]():      {checkTrees},
	reflect.TypeFor[browserFile]():      {checkOneNoVNC, checkHostControl, checkBrowserEgress, warnOneWall},
	reflect.TypeFor[llmKeyFile]():       {checkOneKeySource},
	reflect.TypeFor[llmProviderFile]():  {checkProvider},
	reflect.TypeFor[runsOpenClawFile](): {checkOpenClawMode},
	reflect.TypeFor[controlUIFile]():    {checkAnyOrigin},
	reflect.TypeFor[externalFile]():     {checkExternal},
	reflect.TypeFor[relayFile]():        {checkRelay, checkTokenOrApp},
	reflect.TypeFor[relayAccountFile](): {checkTokenOrApp},
}

// offsetOf returns where the key of an object is written.
func offsetOf(n *node, key string) int {
	_, offset, _ := (*path)(nil).child(key).find(n)
	return offset
}

func checkOneRoster(c *checker, at *path, n *node) {
	if n.get("list") != nil && n.get("entries") != nil {
		c.error(finding{at.child("entries"), offsetOf(n, "entries"),
			fmt.Sprintf("agents are in list (line %d) and in entries", c.lineOf(n, "list")),
			"keep one of the two"})
	}
}

// checkIDs reports agents that have no id of their own.
func checkIDs(c *checker, at *path, n *node) {
	first := map[string]int{}
	for _, a := range agentNodes(at, n) {
		switch {
		case a.listed && a.written == nil:
			c.error(finding{a.at, a.node.offset, `the key "id" is missing`, ""})
			continue
		case !a.listed && a.node.get("id") != nil:
			c.error(finding{a.at.child("id"), offsetOf(a.node, "id"), "the key of the entry is its id", "remove it"})
		case a.listed && a.written.kind != '"':
			continue
		}
		if offset, seen := first[a.id]; seen {
			if c.full() {
				continue
			}
			message := fmt.Sprintf("the agent %s is also on line %d", wording.Quote(a.id), c.doc.Position(offset).Line)
			c.error(finding{a.at, a.offset, message, "give every agent an id of its own"})
			continue
		}
		first[a.id] = a.offset
		if a.listed && a.written.text != a.id {
			c.warn(finding{a.at.child("id"), a.written.offset, "the id is read as " + wording.Quote(a.id), ""})
		}
	}
}

func checkOneDefault(c *checker, at *path, n *node) {
	line := 0
	for _, a := range agentNodes(at, n) {
		if !a.node.get("default").isTrue() {
			continue
		}
		offset := offsetOf(a.node, "default")
		if line > 0 {
			message := fmt.Sprintf("another agent is the default one already (line %d)", line)
			c.error(finding{a.at.child("default"), offset, message, "keep one default: true"})
			continue
		}
		line = c.doc.Position(offset).Line
	}
}

func checkAgentVisibility(c *checker, at *path, n *node) {
	sandbox := n.get("sandbox")
	if sandbox.get("sessionToolsVisibility") != nil {
		c.warn(finding{at.under("sandbox.sessionToolsVisibility"), offsetOf(sandbox, "sessionToolsVisibility"),
			"ignored: it is read from agents.defaults.sandbox only", ""})
	}
}

func checkAllowOrAlso(c *checker, at *path, n *node) {
	allow, also := n.get("allow"), n.get("alsoAllow")
	if allow != nil && also != nil && len(allow.items) > 0 && len(also.items) > 0 {
		c.error(finding{at.child("alsoAllow"), offsetOf(n, "alsoAllow"),
			fmt.Sprintf("allow (line %d) and alsoAllow cannot both have entries", c.lineOf(n, "allow")),
			"put everything into allow, or only the additions into alsoAllow"})
	}
}

const joinFlag = "dangerouslyAllowContainerNamespaceJoin"

func checkJoin(c *checker, at *path, n *node) {
	network := n.get("network")
	if textcheck.JoinsContainer(network.string()) && !n.get(joinFlag).isTrue() {
		c.error(finding{at.child("network"), network.offset, textcheck.JoinMessage, textcheck.JoinHint})
	}
}

// checkBrowserJoin is checkJoin for the browser, whose flag is docker's.
func checkBrowserJoin(c *checker, at *path, n *node) {
	network := n.get("browser").get("network")
	if textcheck.JoinsContainer(network.string()) && !n.get("docker").get(joinFlag).isTrue() {
		c.error(finding{at.under("browser.network"), network.offset, textcheck.JoinMessage, textcheck.JoinHint})
	}
}

func checkSwapCoversMemory(c *checker, at *path, n *node) {
	memory, ok := sizeOf(n.get("memory"))
	swap, both := sizeOf(n.get("memorySwap"))
	if ok && both && swap >= 0 && swap < memory {
		c.error(finding{at.child("memorySwap"), n.get("memorySwap").offset,
			"memorySwap is memory and swap together, so it cannot be less than memory", ""})
	}
}

func checkOneNoVNC(c *checker, at *path, n *node) {
	old, current := n.get("enableNoVnc"), n.get("noVncEnabled")
	kinds := []byte{'t', 'f'}
	if old != nil && current != nil && old.kind != current.kind && slices.Contains(kinds, byte(old.kind)) {
		c.error(finding{at.child("enableNoVnc"), offsetOf(n, "enableNoVnc"),
			"enableNoVnc and noVncEnabled contradict each other", "remove enableNoVnc"})
	}
}
