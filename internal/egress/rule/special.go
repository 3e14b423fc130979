package rule

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/hostname"
)

// special returns why a name is refused unless a rule names exactly it.
func (p *Policy) special(name string, port int) (reason, hint string) {
	named := fmt.Sprintf("add %q to sandbox.egress.allow: a wildcard does not name it", name+portText(port))
	switch {
	case p.isModel(name):
		return name + " serves models, which are reached through the model proxy, where they are counted and paid",
			named + "; what goes there is then unbilled"
	case resolvers.has(name):
		return name + " answers DNS queries over HTTPS, through which names and data leave unseen", named
	case echFronts.has(name):
		return name + " is a name that hides another one (Encrypted Client Hello)", named
	}
	return "", ""
}

func (p *Policy) isModel(name string) bool {
	return p.models[name] || modelHosts.has(name) || isBedrock(name)
}

// nameSet is a set of names and of domains whose names are in it.
type nameSet struct{ names, domains map[string]bool }

// namesOf makes a set of names; *.NAME has every name below it.
func namesOf(names ...string) nameSet {
	s := nameSet{map[string]bool{}, map[string]bool{}}
	for _, name := range names {
		if domain, ok := strings.CutPrefix(name, "*."); ok {
			s.domains[domain] = true
		} else {
			s.names[name] = true
		}
	}
	return s
}

func (s nameSet) has(name string) bool {
	if s.names[name] {
		return true
	}
	for above := range hostname.Above(name) {
		if s.domains[above] {
			return true
		}
	}
	return false
}

// metadataNames are those of the metadata services of clouds. No rule opens them.
var metadataNames = namesOf("metadata.google.internal", "metadata.goog", "instance-data.ec2.internal", "instance-data", "metadata.azure.internal", "metadata.tencentyun.com", "metadata.platformequinix.com")

// echFronts are the outer names of greetings whose real name is encrypted.
var echFronts = namesOf("cloudflare-ech.com", "crypto.cloudflare.com")

// resolvers answer DNS queries over HTTPS, TLS or QUIC.
var resolvers = namesOf(
	"dns.google", "dns64.dns.google", "8888.google", "dns.google.com",
	"cloudflare-dns.com", "*.cloudflare-dns.com", "one.one.one.one", "1dot1dot1dot1.cloudflare-dns.com", "*.cloudflare-gateway.com",
	"dns.quad9.net", "*.quad9.net", "doh.opendns.com", "*.opendns.com", "dns.umbrella.com",
	"dns.nextdns.io", "*.nextdns.io", "dns.adguard.com", "dns.adguard-dns.com", "*.adguard-dns.com",
	"doh.cleanbrowsing.org", "*.cleanbrowsing.org", "dns.controld.com", "*.controld.com", "freedns.controld.com",
	"doh.mullvad.net", "*.dns.mullvad.net", "dns.mullvad.net", "doh.dns.sb", "dns.sb", "*.dns.sb",
	"mozilla.cloudflare-dns.com", "doh.xfinity.com", "doh.libredns.gr", "doh.applied-privacy.net", "dns.switch.ch",
	"dns.alidns.com", "doh.pub", "dns.pub", "doh.360.cn", "dns.twnic.tw", "public.dns.iij.jp", "dns0.eu", "*.dns0.eu", "dns.digitale-gesellschaft.ch", "ordns.he.net",
	"doh.tiarap.org", "dns.bebasid.com", "use-application-dns.net",
)

// modelHosts serve models by an API that is billed.
var modelHosts = namesOf(
	"api.anthropic.com", "api.openai.com", "*.api.openai.com", "*.openai.azure.com", "*.services.ai.azure.com", "*.inference.ai.azure.com",
	"generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*.aiplatform.googleapis.com", "cloudcode-pa.googleapis.com",
	"api.mistral.ai", "codestral.mistral.ai", "api.cohere.ai", "api.cohere.com", "api.groq.com", "api.deepseek.com", "api.x.ai", "*.api.x.ai",
	"openrouter.ai", "api.together.xyz", "api.together.ai", "api.fireworks.ai", "api.perplexity.ai", "api.replicate.com",
	"api.cerebras.ai", "api.sambanova.ai", "integrate.api.nvidia.com", "router.huggingface.co", "api-inference.huggingface.co",
	"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "api.moonshot.cn", "api.moonshot.ai", "open.bigmodel.cn", "api.z.ai", "api.minimax.io", "api.minimaxi.com",
	"models.github.ai", "models.inference.ai.azure.com", "api.githubcopilot.com", "*.githubcopilot.com", "ai-gateway.vercel.sh",
	"api.deepinfra.com", "api.novita.ai", "inference.baseten.co", "api.hyperbolic.xyz", "api.studio.nebius.ai", "api.voyageai.com", "api.ai21.com",
)

// isBedrock reports whether a name is of Amazon Bedrock's runtime, whose names
// have the region in the middle.
func isBedrock(name string) bool {
	return strings.HasPrefix(name, "bedrock") && strings.HasSuffix(name, ".amazonaws.com")
}
