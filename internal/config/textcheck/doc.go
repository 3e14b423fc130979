// Package textcheck has the checks of text in the configuration file: the forms of
// names, paths, addresses and rules. They look at one text alone.
package textcheck

// Check looks at one text and returns what is wrong with it and what to do, or two
// empty strings. Its messages never repeat a text that may be a secret.
type Check func(text string) (message, hint string)

// Named returns the check that a tag of the file's types names, or nil.
func Named(name string) Check { return named[name] }

var named = map[string]Check{
	"address":        checkAddress,
	"agentURL":       checkAgentURL,
	"backend":        checkBackend,
	"bind":           checkBind,
	"bodyMember":     checkBodyMember,
	"collectorURL":   checkCollectorURL,
	"branchName":     checkBranchName,
	"browserNetwork": checkNetworkMode,
	"egressDeny":     checkEgressDeny,
	"egressHost":     checkEgressHost,
	"egressPreset":   checkEgressPreset,
	"egressRule":     checkEgressRule,
	"egressWide":     checkEgressWide,
	"envName":        checkEnvName,
	"envValue":       checkEnvValue,
	"extraHost":      checkExtraHost,
	"gatewayURL":     checkGatewayURL,
	"headerForm":     checkHeaderForm,
	"headerName":     checkHeaderName,
	"hostName":       checkHostName,
	"hostPath":       checkHostPath,
	"httpMethod":     checkHTTPMethod,
	"image":          checkWord,
	"ipAddress":      checkIPAddress,
	"line":           checkLine,
	"model":          checkModel,
	"network":        checkNetwork,
	"origin":         checkOrigin,
	"pathPattern":    checkPathPattern,
	"prefix":         checkPrefix,
	"privateRange":   checkPrivateRange,
	"profile":        checkProfile,
	"providerName":   checkProviderName,
	"proxyURL":       checkProxyURL,
	"quantity":       checkQuantity,
	"range":          checkRange,
	"repository":     checkRepository,
	"roomName":       optionNames("size", "files"),
	"script":         checkScript,
	"secretName":     checkSecretName,
	"socksURL":       checkSocksURL,
	"storageName":    optionNames("size", "inodes"),
	"tmpfs":          checkTmpfs,
	"traceLink":      checkTraceLink,
	"treeTarget":     checkTreeTarget,
	"trustedNetwork": checkTrustedNetwork,
	"ulimitName":     checkUlimitName,
	"upstreamURL":    checkUpstreamURL,
	"urlPattern":     checkURLPattern,
	"user":           checkWord,
	"variantID":      checkVariantID,
	"word":           checkWord,
	"viewport":       checkViewport,
	"workdir":        checkWorkdir,
	"workspacePath":  checkWorkspacePath,
}
