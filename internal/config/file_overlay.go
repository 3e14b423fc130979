package config

// overlayFile is sandbox.overlay: how the changes of a sandbox are kept apart
// from the workspace.
type overlayFile struct {
	Kind      *OverlayKind      `json:"kind" enum:"auto|kernel|copy" doc:"How changes are kept apart: an overlay of the kernel, a copy of the workspace, or whichever is right (auto)."`
	CopyLimit *copyLimitFile    `json:"copyLimit" doc:"Largest directory that is copied."`
	Empty     []string          `json:"empty" check:"word" doc:"Names of directories that a copy begins without what is in them, such as node_modules of another system; what is made in them stays inside."`
	More      []overlayTreeFile `json:"more" doc:"Other directories that the sandbox sees in the same way, such as a vault of notes."`
}

type copyLimitFile struct {
	Size  *Size  `json:"size" check:"amount" doc:"All its files together."`
	Files *int64 `json:"files" min:"1" max:"100000000" doc:"Files, directories and links in it."`
}

type overlayTreeFile struct {
	Source *string `json:"source" required:"yes" check:"hostPath" doc:"Directory of the host."`
	Target *string `json:"target" required:"yes" check:"treeTarget" doc:"Where the sandbox sees it."`
}

// syncFile is sandbox.sync: how changes of an overlay reach the workspace.
type syncFile struct {
	Mode     *SyncMode         `json:"mode" enum:"review|auto|yolo" doc:"A person approves each change (review), or what no rule objects to is applied by itself (auto; yolo is another word for it)."`
	Interval *int              `json:"interval" min:"1" max:"86400" doc:"Seconds between two applications of mode auto."`
	Ignore   []string          `json:"ignore" check:"pathPattern" doc:"Changes that are withheld and only counted, by pattern (* within a name, ** over directories); what the workspace's own .gitignore names is withheld too."`
	Protect  map[string]string `json:"protect" keys:"pathPattern" enum:"blocked|approval|allowed" doc:"What a change to paths means, by pattern; beside the built-in list, of which an entry is taken out with allowed."`
	Limits   *syncLimitsFile   `json:"limits" doc:"How much may be applied at once."`
}

type syncLimitsFile struct {
	Files      *int  `json:"files" min:"1" max:"100000" doc:"Most changed files."`
	FileBytes  *Size `json:"fileBytes" check:"amount" doc:"Largest file."`
	TotalBytes *Size `json:"totalBytes" check:"amount" doc:"All changed files together."`
}
