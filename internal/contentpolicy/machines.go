package contentpolicy

// MachineProtections are the paths that people's own programs execute or obey when
// they enter, build, test or open a project. They matter where files of an agent
// come into a person's directory without a pull request.
func MachineProtections() []Protection {
	const (
		enters  = "it is executed when the directory is entered or its environment is loaded"
		builds  = "it is executed when the project is built, tested or installed"
		hooks   = "it is executed by git on people's machines"
		editor  = "it is executed by editors that open the project"
		agents  = "it instructs or runs programs for the agents of other people"
		fetches = "it decides where programs are downloaded from"
		code    = "it is code that is executed without being read"
		cluster = "it is executed by tools that deploy or provision"
	)
	var list []Protection
	for _, group := range []struct {
		why      string
		patterns []string
	}{
		{enters, []string{"**/.envrc", "**/.env", "**/.env.*", "**/mise.toml", "**/.mise.toml", "**/.mise/**", "**/.tool-versions", "**/.autoenv*", "**/.zshrc", "**/.bashrc", "**/.profile", "**/.inputrc"}},
		{editor, []string{"**/.vscode/**", "**/*.code-workspace", "**/.idea/**", "**/.fleet/**", "**/.zed/**", "**/.devcontainer/**", "**/.devcontainer.json", "**/.vim/**", "**/.vimrc", "**/.exrc", "**/.nvimrc", "**/.nvim.lua", "**/.dir-locals.el", "**/.emacs"}},
		{agents, []string{"**/.claude/**", "**/.claude.json", "**/.mcp.json", "**/mcp.json", "**/.cursor/**", "**/.windsurf/**", "**/.codex/**", "**/.gemini/**", "**/.opencode/**", "**/opencode.json", "**/opencode.jsonc", "**/.aider*", "**/.continue/**", "**/.github/copilot-instructions.md"}},
		{hooks, []string{"**/.husky/**", "**/.githooks/**", "**/lefthook.y*ml", "**/.lefthook.y*ml", "**/.pre-commit-config.yaml", "**/.pre-commit-hooks.yaml", "**/.gitconfig"}},
		{fetches, []string{"**/.npmrc", "**/.yarnrc", "**/.yarnrc.yml", "**/.pnpmfile.cjs", "**/.pnpmfile.mjs", "**/pnpm-workspace.yaml", "**/bunfig.toml", "**/.pypirc", "**/pip.conf", "**/uv.toml", "**/.netrc", "**/.gemrc", "**/.bundle/**", "**/.cargo/**", "**/rust-toolchain", "**/rust-toolchain.toml", "**/.mvn/**", "**/gradle/wrapper/**", "**/gradle.properties", "**/nuget.config", "**/.curlrc", "**/.wgetrc"}},
		{builds, []string{"**/Makefile", "**/GNUmakefile", "**/makefile", "**/*.mk", "**/justfile", "**/.justfile", "**/Taskfile.y*ml", "**/Rakefile", "**/Gemfile", "**/build.rs", "**/build.gradle", "**/build.gradle.kts", "**/settings.gradle", "**/settings.gradle.kts", "**/pom.xml", "**/conftest.py", "**/setup.py", "**/setup.cfg", "**/noxfile.py", "**/tox.ini", "**/sitecustomize.py", "**/usercustomize.py", "**/CMakeLists.txt", "**/*.cmake", "**/meson.build", "**/BUILD", "**/BUILD.bazel", "**/WORKSPACE", "**/MODULE.bazel", "**/.bazelrc", "**/Dockerfile*", "**/Containerfile*", "**/docker-compose*.y*ml", "**/compose*.y*ml", "**/flake.nix", "**/shell.nix", "**/default.nix", "**/Earthfile", "**/Vagrantfile", "**/binding.gyp"}},
		{cluster, []string{"**/Tiltfile", "**/skaffold.yaml", "**/*.tf", "**/terragrunt.hcl", "**/Procfile"}},
		{code, []string{"**/*.pyc", "**/*.pyo", "**/*.pth", "**/__pycache__/**", "**/.venv/**", "**/venv/**", "**/*.so", "**/*.dll", "**/*.dylib", "**/*.node", "**/*.jar", "**/*.class", "**/*.wasm", "**/*.exe", "**/node_modules/**"}},
	} {
		for _, pattern := range group.patterns {
			list = append(list, Protection{pattern, Approval, group.why})
		}
	}
	return list
}
