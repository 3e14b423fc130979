package patch

// Limits of a patch and of the files that it changes.
const (
	MaxBytes     = 4 << 20  // of the text of a patch
	MaxFiles     = 200      // files in a patch
	MaxHunks     = 2000     // hunks in a patch, of all files
	MaxPath      = 4096     // bytes of a path
	MaxFileBytes = 8 << 20  // of a file to change
	MaxFileLines = 500_000  // of a file to change
	MaxPlanBytes = 64 << 20 // of all files, before and after
)

// Kind is what a patch does to a file.
type Kind string

// The kinds. An update may also move the file.
const (
	Add    Kind = "add"
	Delete Kind = "delete"
	Update Kind = "update"
)

// A Patch is a list of changes to different files.
type Patch struct {
	Changes []Change
}

// A Change is what a patch does to one file.
type Change struct {
	Kind    Kind
	Path    string
	MoveTo  string   // new path of an updated file, or ""
	Content []string // lines of an added file
	Hunks   []Hunk   // of an updated file; none if it is only moved
	Line    int      // in the text of the patch
}

// A Hunk changes lines that are near each other.
type Hunk struct {
	Headers   []string // lines of the file to look for first, outermost first
	Lines     []Line
	EndOfFile bool // the lines are the last of the file
	Line      int  // in the text of the patch
}

// A Line is one line of a hunk.
type Line struct {
	Op   Op
	Text string
}

// Op is what happens to a line.
type Op byte

// The characters that lines of a hunk begin with.
const (
	Keep   Op = ' '
	Remove Op = '-'
	Insert Op = '+'
)

// old lists the lines that the hunk expects in the file.
func (h *Hunk) old() []string { return oldLines(h.Lines) }

// appends tells whether nothing in the hunk says where it belongs: it then goes
// to the end of the file, wherever it is among the other hunks.
func (h *Hunk) appends() bool { return len(h.Headers) == 0 && len(h.old()) == 0 }

func oldLines(lines []Line) []string {
	var old []string
	for _, line := range lines {
		if line.Op != Insert {
			old = append(old, line.Text)
		}
	}
	return old
}
