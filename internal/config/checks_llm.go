package config

// checkOneKeySource wants exactly one way to a key.
func checkOneKeySource(c *checker, at *path, n *node) {
	var ways []string
	for _, way := range []string{"env", "file", "command", "age"} {
		if n.get(way) != nil {
			ways = append(ways, way)
		}
	}
	const hint = `write one of {env: "NAME"}, {file: "PATH"}, {command: ["PROGRAM"]}, {age: "PATH", identity: "PATH"}`
	if len(ways) != 1 {
		c.error(finding{at, n.offset, "a key comes from exactly one of env, file, command and age", hint})
		return
	}
	if (ways[0] == "age") != (n.get("identity") != nil) {
		c.error(finding{at, n.offset, "age and identity belong together", hint})
	}
	if command := n.get("command"); command != nil && len(command.items) == 0 {
		c.error(finding{at.child("command"), command.offset, "the program is missing", hint})
	}
}

// checkProvider wants keys, and LiteLLM for what only LiteLLM can do.
func checkProvider(c *checker, at *path, n *node) {
	if keys := n.get("keys"); keys != nil && keys.kind == '[' && len(keys.items) == 0 {
		c.error(finding{at.child("keys"), keys.offset, "at least one key is needed", ""})
	}
	if kind := n.get("kind"); kind == nil || kind.text == DefaultLLMProvider {
		return
	}
	for _, key := range []string{"adminKey", "keyPerRun"} {
		if value := n.get(key); value != nil {
			c.error(finding{at.child(key), value.offset, "only a provider of kind litellm has it", ""})
		}
	}
}
