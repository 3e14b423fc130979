package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The bombs use up what there is, up to a number that they are given; reaching
// it means that no limit stopped them.

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

// bomb repeats a step until it fails or was done so many times.
func bomb(a *attempts, name string, times int, step func(int) error) {
	for i := range times {
		if err := step(i); err != nil {
			fmt.Printf("stopped %s after %d: %v\n", name, i, err)
			return
		}
	}
	a.try(fmt.Sprintf("%d times %s", times, name), nil)
}

// forks makes processes that wait for this one's end.
func forks(a *attempts, args []string) {
	var ends [2]int
	must(unix.Pipe2(ends[:], unix.O_CLOEXEC))
	bomb(a, "a process", number(args[0]), func(int) error {
		_, err := syscall.ForkExec("/proc/self/exe", []string{"attack", "wait"}, &syscall.ProcAttr{Files: []uintptr{uintptr(ends[0])}})
		return err
	})
}

// memory takes and touches memory.
func memory(a *attempts, args []string) {
	const piece = 1 << 20
	bomb(a, "a MiB of memory", number(args[0]), func(int) error {
		area, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_POPULATE)
		if err == nil {
			area[0] = 1
		}
		return err
	})
}

// fill writes files of so many MiB, and leaves them.
func fill(a *attempts, args []string) {
	dir, each, piece := args[0], number(args[2]), make([]byte, 1<<20)
	var f *os.File
	bomb(a, "a MiB in "+dir, number(args[1]), func(i int) (err error) {
		if i%each == 0 {
			if f, err = os.Create(filepath.Join(dir, "fill-"+strconv.Itoa(i))); err != nil {
				return err
			}
		}
		_, err = f.Write(piece)
		return err
	})
}

// fillOver fills until it is killed, at a pace that leaves time for that:
// with names, without, or behind directories that it closes to everybody.
func fillOver(a *attempts, args []string) {
	dir, way, piece := args[0], args[2], make([]byte, 1<<20)
	if way == "closed" {
		must(os.MkdirAll(filepath.Join(dir, "closed/within"), 0o700))
	}
	bomb(a, "a MiB in "+dir, number(args[1]), func(i int) error {
		time.Sleep(5 * time.Millisecond)
		path := filepath.Join(dir, "over-"+strconv.Itoa(i))
		if way == "closed" {
			path = filepath.Join(dir, "closed/within", strconv.Itoa(i))
			must(os.Chmod(filepath.Join(dir, "closed"), 0o700))
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		switch way {
		case "nameless":
			_ = os.Remove(path) // and it stays open
		case "closed":
			must(os.Chmod(filepath.Join(dir, "closed"), 0))
		}
		_, err = f.Write(piece)
		if way != "nameless" {
			_ = f.Close()
		}
		return err
	})
}

// fillBehind fills with a process that the command does not wait for.
func fillBehind(_ *attempts, args []string) {
	_, err := syscall.ForkExec("/proc/self/exe", []string{"attack", "fill-over", args[0], args[1], "named"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
	must(err)
}

// fillQuick has so many processes write one file each, as fast as they can, and
// waits for them.
func fillQuick(_ *attempts, args []string) {
	var children []int
	for i := range number(args[2]) {
		dir := filepath.Join(args[0], fmt.Sprintf("quick-%d-%d", os.Getpid(), i))
		must(os.Mkdir(dir, 0o700))
		pid, err := syscall.ForkExec("/proc/self/exe", []string{"attack", "fill", dir, args[1], args[1]}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
		must(err)
		children = append(children, pid)
	}
	for _, pid := range children {
		var status syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &status, 0, nil)
		fmt.Println("ended:", status.ExitStatus(), status.Signal())
	}
}

// inodesOver makes files until it is killed, at such a pace.
func inodesOver(a *attempts, args []string) {
	bomb(a, "a file in "+args[0], number(args[1]), func(i int) error {
		if i%100 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		dir := filepath.Join(args[0], "over", strconv.Itoa(i/1000))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600)
	})
}

// clearDir removes what the others left.
func clearDir(_ *attempts, args []string) {
	entries, err := os.ReadDir(args[0])
	must(err)
	for _, entry := range entries {
		if path := filepath.Join(args[0], entry.Name()); entry.Name() != "attack" {
			_ = os.Chmod(path, 0o700)
			must(os.RemoveAll(path))
		}
	}
}

// inodes makes empty files, and leaves them.
func inodes(a *attempts, args []string) {
	bomb(a, "a file in "+args[0], number(args[1]), func(i int) error {
		fd, err := unix.Open(filepath.Join(args[0], "inode-"+strconv.Itoa(i)), unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
}

// watchers makes inotify instances, of which every user has few, says how many
// it got, and keeps them until its input ends.
func watchers(a *attempts, args []string) {
	made := 0
	bomb(a, "an inotify instance", number(args[0]), func(int) error {
		_, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err == nil {
			made++
		}
		return err
	})
	fmt.Printf("holding %d\n", made)
	if len(args) > 1 && args[1] == "hold" {
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
}

func files(a *attempts, args []string) {
	bomb(a, "an open file", number(args[0]), func(int) error {
		_, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
}

// strayWrites looks for a directory where a file can be left, outside of those
// that are given: each would be a disk to fill.
func strayWrites(a *attempts, args []string) {
	looked := 0
	_ = filepath.WalkDir("/", func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		for _, skip := range append(args, "/proc", "/sys", "/dev") {
			if path == skip {
				return filepath.SkipDir
			}
		}
		if looked++; strings.Count(path, "/") > 3 {
			return filepath.SkipDir
		}
		name := filepath.Join(path, "atoll-canary-"+strconv.Itoa(os.Getpid()))
		fd, err := unix.Open(name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
			_ = os.Remove(name)
		}
		if err == nil || !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
			a.try("a file in "+path, err)
		}
		return nil
	})
	fmt.Println("directories tried:", looked)
	if looked == 0 {
		a.try("any directory", errors.New("none seen"))
	}
}

// held is how much the files in a directory hold.
func held(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	return total
}
