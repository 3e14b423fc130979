package hostname

// sharedNetworks are domains of networks that answer for many owners at the
// same addresses, by the domain that their names end in.
var sharedNetworks = map[string]string{
	"akamaized.net":            "Akamai",
	"akamaihd.net":             "Akamai",
	"edgekey.net":              "Akamai",
	"edgesuite.net":            "Akamai",
	"cloudfront.net":           "Amazon CloudFront",
	"amazonaws.com":            "Amazon Web Services",
	"azureedge.net":            "Azure CDN",
	"azurefd.net":              "Azure Front Door",
	"blob.core.windows.net":    "Azure Storage",
	"b-cdn.net":                "bunny.net",
	"cdn77.org":                "CDN77",
	"cdn.cloudflare.net":       "Cloudflare",
	"pages.dev":                "Cloudflare Pages",
	"r2.dev":                   "Cloudflare R2",
	"r2.cloudflarestorage.com": "Cloudflare R2",
	"workers.dev":              "Cloudflare Workers",
	"digitaloceanspaces.com":   "DigitalOcean Spaces",
	"fastly.net":               "Fastly",
	"fastlylb.net":             "Fastly",
	"fly.dev":                  "Fly.io",
	"githubusercontent.com":    "Fastly",
	"github.io":                "GitHub Pages",
	"googleapis.com":           "Google",
	"googleusercontent.com":    "Google",
	"appspot.com":              "Google App Engine",
	"run.app":                  "Google Cloud Run",
	"web.app":                  "Firebase",
	"herokuapp.com":            "Heroku",
	"netlify.app":              "Netlify",
	"onrender.com":             "Render",
	"stackpathcdn.com":         "StackPath",
	"cdnjs.cloudflare.com":     "Cloudflare",
	"vercel.app":               "Vercel",
	"backblazeb2.com":          "Backblaze",
	"wasabisys.com":            "Wasabi",
	"supabase.co":              "Supabase",
	"ngrok.io":                 "ngrok",
	"ngrok-free.app":           "ngrok",
	"trycloudflare.com":        "Cloudflare",
	"storage.yandexcloud.net":  "Yandex Cloud",
	"aliyuncs.com":             "Alibaba Cloud",
	"myqcloud.com":             "Tencent Cloud",
	"edgecastcdn.net":          "Edgio",
	"llnwd.net":                "Edgio",
	"kxcdn.com":                "KeyCDN",
	"impervadns.net":           "Imperva",
	"gcdn.co":                  "Gcore",
	"deno.dev":                 "Deno Deploy",
	"web.core.windows.net":     "Azure Storage",
	"azurewebsites.net":        "Azure App Service",
	"trafficmanager.net":       "Azure Traffic Manager",
	"firebaseapp.com":          "Firebase",
	"cloudfunctions.net":       "Google Cloud Functions",
}

// SharedNetwork returns the network that answers for a name together with the
// names of other owners, or "". Names of their own that lead to such a network
// are not known to it.
func SharedNetwork(name string) string {
	if network := sharedNetworks[name]; network != "" {
		return network
	}
	for above := range Above(name) {
		if network := sharedNetworks[above]; network != "" {
			return network
		}
	}
	return ""
}
