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

// notInScripts are the commands that a script must not call.
var notInScripts = setOf(`AUTH CLIENT DISCARD EVAL EVALSHA EVALSHA_RO EVAL_RO EXEC HELLO MULTI PSUBSCRIBE PUNSUBSCRIBE
	QUIT RESET ROLE SCRIPT SUBSCRIBE UNSUBSCRIBE UNWATCH WATCH ` + blockingCommands)

// runNested runs a command of a script. p is not the caller's peer: it uses the
// database that the script has selected, and RESP2.
func (e *engine) runNested(p *server.Peer, name string, args []string) {
	reply := e.nestedReply(p, name, args)
	if text, failed := bytes.CutPrefix(reply, []byte("-")); failed {
		e.scriptError = scriptErrorText(strings.TrimSuffix(string(text), "\r\n"))
		reply = []byte("-" + e.scriptError + "\r\n")
	}
	p.WriteRaw(string(reply))
}

func (e *engine) nestedReply(p *server.Peer, name string, args []string) []byte {
	refused := ""
	switch {
	case !e.isCommand(name):
		refused = msgScriptUnknown
	case notInScripts[name]:
		refused = msgNoScript
	case name == "SELECT":
		_, refused = database(args)
	}
	if refused != "" {
		return encode(nil, failure(refused), false)
	}
	// SELECT and TTL run in miniredis, because only it knows the database that
	// the script has selected.
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

// scriptErrorText returns an error's text as a script receives it. For some errors
// it differs from the text that a client receives.
func scriptErrorText(text string) string {
	switch {
	case strings.HasPrefix(text, "ERR wrong number of arguments for '"):
		return msgScriptNumber
	case strings.HasPrefix(text, "ERR unknown subcommand '"):
		return msgScriptUnknown
	}
	return text
}

var (
	// scriptFailed matches miniredis's reply for every error of a running script.
	scriptFailed = regexp.MustCompile(`(?s)^-ERR Error compiling script \(new function\): :(\d+): (.*?)(?: script: \w+, &c\.)? +stack traceback:`)
	// callMisuse matches the errors of redis.call about its own arguments.
	callMisuse = regexp.MustCompile(`^(Lua redis lib command arguments must be|Please specify at least one argument for) `)
)

// scriptReply corrects miniredis's reply to EVAL and EVALSHA if the script
// failed. In Redis the error of a command keeps its code, for which a caller may
// check: WRONGTYPE, for example. And Redis caches a script even if it fails, so
// EVALSHA finds it afterwards.
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
	case text == e.scriptError:
	case callMisuse.MatchString(text):
		text = "ERR " + text
	default:
		text = "ERR user_script:" + line + ": " + text
	}
	return []byte("-" + text + " script: " + hash + ", on @user_script:" + line + ".\r\n")
}
