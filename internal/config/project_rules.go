package config

import (
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config/browserkeys"
)

// projectRule says what a key may do in a file that was found in a project and
// is not trusted.
type projectRule int

// The rules. The zero value is the strict one, so that a key without a rule
// counts only in a trusted file.
const (
	ruleTrust  projectRule = iota // it counts only in a trusted file
	ruleRisky                     // the same, and it is shown first when trust is asked for
	ruleWithin                    // the keys inside it have rules of their own
	ruleLower                     // it lowers a limit
	ruleFalse                     // only false counts
	ruleTrue                      // only true counts
	ruleAdd                       // its entries are added
	ruleEmpty                     // only an empty list counts
	ruleWord                      // only the words of strictWords count
	ruleNone                      // it has no effect in any file
)

// projectRules has the keys of every type of the file, by the type's name in
// the JSON Schema. A test wants each key of the schema in exactly one list.
var projectRules = map[string]map[projectRule]string{
	"file": {
		ruleNone:   "$schema version",
		ruleWithin: "agents tools llm outbound relay runs gateway mcp e2b",
		ruleTrust:  "session",
		ruleRisky:  "models secrets vm kubernetes pools",
	},
	"agents":   {ruleWithin: "defaults list entries", ruleTrust: "ownership"},
	"defaults": {ruleWithin: "sandbox llm", ruleTrust: "session skipBootstrap model skills", ruleRisky: "workspace"},
	"agent": {
		ruleNone: "id", ruleWithin: "sandbox llm tools", ruleTrust: "default model skills", ruleRisky: "workspace",
	},
	"tools":        {ruleFalse: "host", ruleAdd: "deny", ruleWithin: "sandbox web", ruleTrust: "allow alsoAllow"},
	"agentTools":   {ruleFalse: "host", ruleAdd: "deny", ruleWithin: "sandbox", ruleTrust: "allow alsoAllow"},
	"sandboxTools": {ruleWithin: "tools"},
	"toolList":     {ruleAdd: "deny", ruleTrust: "allow alsoAllow"},
	"web":          {ruleWithin: "search fetch"},
	"webSearch":    {ruleFalse: "enabled", ruleTrust: "maxResults timeoutSeconds", ruleRisky: "provider apiKey baseUrl"},
	"webFetch":     {ruleFalse: "enabled", ruleTrust: "maxChars userAgent", ruleRisky: "allowAddresses useTrustedEnvProxy"},
	"sandbox": {
		ruleWord:   "workspaceAccess",
		ruleEmpty:  "networkAllow networkExecAllow dangerouslyAllowSecretEnv",
		ruleWithin: "docker browser overlay sync egress",
		ruleTrust:  "scope perSession prune ssh",
		ruleRisky:  "mode backend workspaceRoot sessionToolsVisibility",
	},
	"overlay":    {ruleWithin: "copyLimit", ruleTrust: "kind empty", ruleRisky: "more"},
	"copyLimit":  {ruleLower: "size files"},
	"sync":       {ruleWithin: "limits", ruleWord: "mode protect", ruleTrust: "interval", ruleRisky: "ignore"},
	"syncLimits": {ruleLower: "files fileBytes totalBytes"},
	"egress": {
		ruleWord:   "mode",
		ruleEmpty:  "allow private services",
		ruleAdd:    "deny",
		ruleWithin: "limits",
		ruleTrust:  "proxyEnv",
		ruleRisky:  "upstream via",
	},
	"egressLimits": {ruleLower: "connections newPerMinute bytesOut bytesIn idleSeconds lifeSeconds"},
	"docker": {
		ruleLower: "pidsLimit memory cpus deviceReadBps deviceWriteBps deviceReadIOps deviceWriteIOps workspaceLimit",
		ruleTrue:  "readOnlyRoot",
		ruleWord:  "network",
		ruleAdd:   "capDrop",
		ruleFalse: "dangerouslyAllowReservedContainerTargets dangerouslyAllowExternalBindSources dangerouslyAllowContainerNamespaceJoin",
		ruleTrust: "containerPrefix workdir tmpfs memorySwap blkioWeight storageOpt ulimits dns extraHosts",
		ruleRisky: "image user env setupCommand gpus seccompProfile apparmorProfile binds",
	},
	"browser": {
		ruleNone:   "allowHostControl", // true is refused everywhere
		ruleFalse:  "enabled evaluate uploads dangerouslyNoSandbox dangerouslyIgnoreCertificates",
		ruleLower:  "memory pidsLimit shmSize tabs idleMinutes",
		ruleWord:   "profile view control cdp",
		ruleWithin: "downloads egress",
		ruleTrust:  "containerPrefix cdpPort vncPort noVncPort headless noVncEnabled enableNoVnc autoStart autoStartTimeoutMs engine viewport",
		ruleRisky:  "image network cdpSourceRange binds",
	},
	"downloads": {ruleLower: "maxBytes maxFiles", ruleTrust: "into"},
	"llm": {
		ruleWithin: "budgets timeouts limits",
		ruleWord:   "unpriced",
		ruleTrust:  "billing",
		ruleRisky:  "providers prices embeddings allowMembers allowTools",
	},
	"llmSharedBudgets": {ruleLower: "account day"},
	"llmTimeouts":      {ruleLower: "connectMs headerMs idleMs totalMs"},
	"llmLimits":        {ruleLower: "bodyBytes maxOutputTokens choices connections requests"},
	"agentLLM":         {ruleWithin: "budgets", ruleWord: "bodyPolicy", ruleTrust: "models"},
	"llmBudgets":       {ruleLower: "run session agent"},
	"outbound":         {ruleRisky: "caFile"},
	"mcp":              {ruleFalse: "allowDestroy", ruleTrust: "onExit"},
	"e2b":              {ruleRisky: "templates egress"},
	"relay": {
		ruleWithin: "limits",
		ruleWord:   "protect",
		ruleTrust:  "base history draft labels author",
		ruleRisky:  "repository container token app accounts pullRequests api caFile allowHTTP agents",
	},
	"relayLimits":   {ruleLower: "commits files fileBytes totalBytes packBytes"},
	"runs":          {ruleLower: "concurrency", ruleRisky: "openclaw variants external"},
	"gateway":       {ruleWithin: "limits", ruleRisky: "port bind customBindHost trustedNetwork hosts auth tls controlUi traces links"},
	"gatewayLimits": {ruleLower: "connections perAddress inboundBytes inboundBytesPerToken requests runs sandboxes usd"},
}

// strictWords are the values that count of the keys with ruleWord, by type and key.
var strictWords = map[string][]string{
	"sandbox.workspaceAccess": {string(AccessNone), string(AccessRO), string(AccessOverlay)},
	"sync.mode":               {string(SyncReview)},
	"sync.protect":            {"blocked"},
	"egress.mode":             {string(EgressOff), string(EgressEnforce)},
	"docker.network":          {"none"},
	"browser.profile":         {string(browserkeys.ProfileEphemeral)},
	"browser.view":            {string(browserkeys.ViewOff)},
	"browser.control":         {string(browserkeys.ControlOff)},
	"browser.cdp":             {string(browserkeys.CDPOff)},
	"llm.unpriced":            {"refuse"},
	"agentLLM.bodyPolicy":     {"strict"},
	"relay.protect":           {"blocked"},
}

// ruleOf returns the rule of a key of a type. A key without one needs trust.
func ruleOf(typeName, key string) projectRule {
	for rule, keys := range projectRules[typeName] {
		if slices.Contains(strings.Fields(keys), key) {
			return rule
		}
	}
	return ruleTrust
}

// counts reports whether a value of a key with this rule can only take away.
func (r projectRule) counts(place string, n *node) bool {
	switch r {
	case ruleLower, ruleAdd, ruleNone:
		return true
	case ruleFalse:
		return n.kind == 'f'
	case ruleTrue:
		return n.kind == 't'
	case ruleEmpty:
		return n.kind == '[' && len(n.items) == 0
	case ruleWord:
		return slices.Contains(strictWords[place], n.string())
	}
	return false
}
