package tethertest

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"io"
	"regexp"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

const (
	msgNoScript      = "ERR This Redis command is not allowed from script"
	msgScriptUnknown = "ERR Unknown Redis command called from script"
	msgScriptNumber  = "ERR Wrong number of args calling Redis command from script"
)

// unscripted are the commands that a script may not run.
var unscripted = setOf(`AUTH CLIENT DISCARD EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC HELLO MULTI PSUBSCRIBE PUNSUBSCRIBE
	QUIT RESET ROLE SCRIPT SUBSCRIBE UNSUBSCRIBE UNWATCH WATCH ` + blockingCommands)

// nested runs a command of a script. Its peer is not the caller's: it is in the
// database that the script has selected, and answers in RESP2.
func (e *engine) nested(p *server.Peer, name string, args []string) {
	reply := e.nestedReply(p, name, args)
	if text, failed := bytes.CutPrefix(reply, []byte("-")); failed {
		e.thrown = scriptWords(strings.TrimSuffix(string(text), "\r\n"))
		reply = []byte("-" + e.thrown + "\r\n")
	}
	p.WriteRaw(string(reply))
}

func (e *engine) nestedReply(p *server.Peer, name string, args []string) []byte {
	refused := ""
	switch {
	case !e.knows(name):
		refused = msgScriptUnknown
	case unscripted[name]:
		refused = msgNoScript
	case name == "SELECT":
		_, refused = database(args)
	}
	if refused != "" {
		return encode(nil, failure(refused), false)
	}
	// The database of a script, which SELECT and TTL are about, is known to
	// miniredis alone.
	if run, own := commands[name]; own && name != "SELECT" && name != "TTL" {
		v, _ := run(e, e.caller, args)
		return encode(nil, v, false)
	}
	var written bytes.Buffer
	inner := server.NewPeer(bufio.NewWriter(&written))
	inner.Ctx = p.Ctx
	e.delegate(inner, append([]string{name}, args...)...)
	inner.Flush()
	return written.Bytes()
}

// scriptWords is how a script is told what others are told differently.
func scriptWords(text string) string {
	switch {
	case strings.HasPrefix(text, "ERR wrong number of arguments for '"):
		return msgScriptNumber
	case strings.HasPrefix(text, "ERR unknown subcommand '"):
		return msgScriptUnknown
	}
	return text
}

var (
	// scriptFailed is what miniredis makes of every error of a running script.
	scriptFailed = regexp.MustCompile(`(?s)^-ERR Error compiling script \(new function\): :(\d+): (.*?)(?: script: \w+, &c\.)? +stack traceback:`)
	// misused is what redis.call says about its arguments.
	misused = regexp.MustCompile(`^(Lua redis lib command arguments must be|Please specify at least one argument for) `)
)

// scriptReply corrects the reply to EVAL and EVALSHA. In Redis an error that a
// command has caused keeps its code: a caller may be waiting for WRONGTYPE. And
// a script that fails is known by its hash from then on, like any other.
func (e *engine) scriptReply(reply []byte, args []string) []byte {
	found := scriptFailed.FindSubmatch(reply)
	if found == nil || len(args) < 2 {
		return reply
	}
	hash := args[1]
	if !strings.HasPrefix(strings.ToUpper(args[0]), "EVALSHA") {
		sum := sha1.Sum([]byte(args[1]))
		hash = hex.EncodeToString(sum[:])
		e.delegate(server.NewPeer(bufio.NewWriter(io.Discard)), "SCRIPT", "LOAD", args[1])
	}
	line, text := string(found[1]), string(found[2])
	switch {
	case text == e.thrown:
	case misused.MatchString(text):
		text = "ERR " + text
	default:
		text = "ERR user_script:" + line + ": " + text
	}
	return []byte("-" + text + " script: " + hash + ", on @user_script:" + line + ".\r\n")
}
