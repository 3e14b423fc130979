package relay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// takePieces commits what the agent did not, and takes all work that is not on
// its branch, each piece into a record of its own. They are never pushed without
// a person: what the agent meant is its branch. The record of the branch is
// written after theirs, so that a crash in between does all of it again. It
// returns the head of the branch as the sandbox says it, or "" if it does not.
func (r *Relay) takePieces(ctx context.Context, p *Project, s Site, record *Record) (head string, err error) {
	found, err := s.collect(ctx, &record.Work, record.Run)
	if err != nil {
		record.Unsaved = err.Error()
		return "", ctx.Err()
	}
	record.Committed = found.committed
	record.Work.Notes = append(record.Work.Notes, found.notes...)
	var unsaved []string
	if found.unsaved {
		unsaved = append(unsaved, "there are files that cannot be committed, for example of another repository")
	}
	if more := len(found.pieces) - maxPieces; more > 0 {
		unsaved = append(unsaved, fmt.Sprintf("there are %d more branches and stashes than the %d that are taken", more, maxPieces))
		found.pieces = found.pieces[:maxPieces]
	}
	for _, piece := range found.pieces {
		switch err := r.takePiece(ctx, p, s, record, piece); {
		case errors.Is(err, ErrRefused) || errors.Is(err, ErrProgram):
			unsaved = append(unsaved, fmt.Sprintf("%s: %v", piece.what, err))
		case err != nil:
			return "", err
		}
	}
	record.Unsaved = strings.Join(unsaved, "; ")
	return found.head, nil
}

func (r *Relay) takePiece(ctx context.Context, p *Project, s Site, of *Record, piece piece) error {
	record := &Record{
		Run: fmt.Sprintf("%s.left-%d", of.Run, piece.number), Account: of.Account, Agent: of.Agent, Project: of.Project, About: of.About, Held: true, Piece: piece.what,
		Work: Work{Key: piece.key(&of.Work), Base: of.Work.Base, Start: of.Work.Tip(), Dir: of.Work.Dir, Checkout: of.Work.Checkout},
	}
	if _, err := r.Load(record.Run); errors.Is(err, os.ErrNotExist) {
		if _, err := r.store(ctx, p, record, r.extract(ctx, p, s, record, piece.ref())); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	of.Pieces = append(of.Pieces, Piece{piece.what, record.Run})
	return nil
}
