package local

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/image/npm"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// openclawUID is the user of OpenClaw's image.
const openclawUID = 1001

// openclaw builds the image of OpenClaw from npm: the plain sandbox, Node.js, OpenClaw in
// /app and pnpm.
func (b *Builder) openclaw(ctx context.Context, o *order) (*Result, error) {
	published := o.args[image.ArgOpenClawBase]
	_, version, ok := strings.Cut(path.Base(published), ":")
	if !ok {
		return nil, errhint.With(fmt.Errorf("--openclaw-base: without an engine, %s must have a version as its tag", published), "write for example ghcr.io/openclaw/openclaw:2026.9.6")
	}
	plain, err := packagesOf(recipeSandbox)
	if err != nil {
		return nil, err
	}
	user := o.args[image.ArgFinalUser]
	root, err := b.system(ctx, system{recipe: recipeOpenClaw, name: "atoll-openclaw-root:latest", user: user, uid: openclawUID, home: "/workspace", packages: plain})
	if err != nil {
		return nil, err
	}
	node, err := b.node(ctx, rootfs.ShortName(root.Image.Names[0]))
	if err != nil {
		return nil, err
	}
	b.report("resolving openclaw@%s", version)
	return b.packages(ctx, "openclaw@"+version, &layer{
		recipe: recipeOpenClaw, base: node.Names[0], dest: "/app", commands: []string{"openclaw", "pnpm"}, names: []string{o.target}, user: user,
		texts: map[string]string{
			"app/FROM-NPM": "openclaw@" + version + " from npm; not the published image\n",
			npmrc():        "store-dir=" + image.StorePath + "\nupdate-notifier=false\n",
		},
		env: map[string]string{"LINK": "dist=node_modules/openclaw/dist"},
	}, "pnpm@"+o.args["PNPM_VERSION"])
}

// npmrc is where the Node.js of images looks for settings of all users.
func npmrc() string {
	return "opt/atoll/node/node_modules/node-linux-" + npm.ThisMachine(false).CPU + "/etc/npmrc"
}
