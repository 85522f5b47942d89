// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// patience bounds the time that a program takes to end after Stop.
const patience = 10 * time.Second

// Process is a running program. Its output goes to a file.
type Process struct {
	cmd     *exec.Cmd
	logFile string
	done    chan struct{} // closed when the program has ended
	err     error         // its result; read after done is closed
}

// Run starts one more program beside the servers. Its output goes to NAME.log in the cluster's
// folder, which is also its working directory. The caller must end it.
func (c *Cluster) Run(name, program string, args ...string) (*Process, error) {
	return startProcess(c.dir, name, program, args...)
}

// startProcess starts a program, and appends its output to dir/NAME.log.
//
// On Linux the program dies with this process, however this process ends. The kernel ties the
// program to the thread that started it, so one goroutine keeps that thread until the program has
// ended.
func startProcess(dir, name, program string, args ...string) (*Process, error) {
	p := &Process{
		cmd:     exec.Command(program, args...),
		logFile: filepath.Join(dir, name+".log"),
		done:    make(chan struct{}),
	}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	defer log.Close() // the program has its own descriptor
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Dir = dir
	p.cmd.SysProcAttr = ofThisProcess()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return p, nil
}

// Stop asks the program to end, waits, and kills it when it does not. When Stop returns, it has
// ended.
func (p *Process) Stop() {
	if p.cmd.Process.Signal(syscall.SIGTERM) == nil {
		select {
		case <-p.done:
			return
		case <-time.After(patience):
		}
	}
	p.Kill()
}

// Kill ends the program as a crash would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if it has ended already
	<-p.done
}

// PeakBytes returns the most physical memory that the program has had, without the pages of its own
// file: how many of these count depends on how the kernel has cached the file. Only Linux knows it.
func (p *Process) PeakBytes() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var peak, file int64 // in kB
	for name, kilobytes := range map[string]*int64{"VmHWM:": &peak, "RssFile:": &file} {
		_, after, _ := bytes.Cut(status, []byte(name))
		if _, err := fmt.Sscanf(string(after), "%d kB", kilobytes); err != nil {
			return 0, fmt.Errorf("read %s of the program's status: %w", name, err)
		}
	}
	return (peak - file) << 10, nil
}

// exited reports how the program ended, with the end of its log; nil while it runs.
func (p *Process) exited() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %v\n%s", filepath.Base(p.cmd.Path), p.err, p.LogTail(40))
	default:
		return nil
	}
}

// Log returns all of the program's output.
func (p *Process) Log() ([]byte, error) { return os.ReadFile(p.logFile) }

// LogTail returns the last lines of the program's output.
func (p *Process) LogTail(lines int) []byte {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return []byte(err.Error())
	}
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return bytes.Join(all[max(len(all)-lines, 0):], []byte("\n"))
}
