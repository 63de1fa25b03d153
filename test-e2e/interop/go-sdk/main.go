// Command sdk is an application on the Go SDK. It hosts a service that echoes, dials it, logs in, or enrolls.
//
// Arguments: file of the enrollment token, "host" or "dial", name of the service, how to sign in ("sessions", "oidc", or
// "announced": the SDK asks the controller). Or only "login" or "enroll". Events are JSON lines on stdout, and commands
// are lines on stdin. The end of stdin ends the program.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net"
	"os"
	"time"

	"github.com/openziti/edge-api/rest_client_api_client/current_api_session"
	"github.com/openziti/sdk-golang/ziti"
	"github.com/openziti/sdk-golang/ziti/enroll"
)

type event struct {
	Event    string `json:"event"`
	Bytes    int64  `json:"bytes"`
	Sent     string `json:"sent,omitempty"`
	Received string `json:"received,omitempty"`
	Error    string `json:"error,omitempty"`
}

func main() {
	var err error
	switch os.Args[1] {
	case "login":
		err = logIns()
	case "enroll":
		err = enrollments()
	default:
		err = run(os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(tokenFile, role, service, scheme string) error {
	commands := bufio.NewScanner(os.Stdin)
	network, err := join(tokenFile, scheme)
	if err != nil {
		return err
	}
	if role == "host" {
		go func() {
			for commands.Scan() {
				tell(refresh(network))
			}
			os.Exit(0)
		}()
		return host(network, service)
	}
	tell(event{Event: "ready"})
	for commands.Scan() {
		var total, middle int64
		if _, err := fmt.Sscanf(commands.Text(), "transfer %d %d", &total, &middle); err != nil {
			return err
		}
		tell(transfer(network, service, total, middle, commands))
	}
	return nil
}

// join enrolls an identity and logs it in.
func join(tokenFile, scheme string) (ziti.Context, error) {
	jwt, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	token, _, err := enroll.ParseToken(string(jwt))
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	flags := enroll.EnrollmentFlags{Token: token}
	if err := flags.KeyAlg.Set("EC"); err != nil {
		return nil, err
	}
	config, err := enroll.Enroll(flags)
	if err != nil {
		return nil, fmt.Errorf("enrollment: %w", err)
	}
	network, err := ziti.NewContext(config)
	if err != nil {
		return nil, err
	}
	if scheme != "announced" {
		network.(*ziti.ContextImpl).CtrlClt.SetUseOidc(scheme == "oidc")
	}
	if err := network.Authenticate(); err != nil {
		return nil, fmt.Errorf("login: %w", err)
	}
	return network, nil
}

// host echoes what each client sends.
func host(network ziti.Context, service string) error {
	// without WaitForNEstablishedListeners, which may miss the first one and then fails
	listener, err := network.ListenWithOptions(service, ziti.DefaultListenOptions())
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	tell(event{Event: "ready"})
	for {
		conn, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go func() {
			tell(event{Event: "accepted"})
			bytes, err := io.Copy(conn, conn)
			tell(event{Event: "ended", Bytes: bytes, Error: text(err)})
			_ = conn.Close()
		}()
	}
}

// transfer sends bytes and receives their echo. In the middle it tells so, and waits for a command: to refresh, as often
// as it comes, to sign out, or to continue.
func transfer(network ziti.Context, service string, total, middle int64, commands *bufio.Scanner) event {
	conn, err := network.Dial(service)
	if err != nil {
		return event{Event: "refused", Error: err.Error()}
	}
	defer conn.Close()
	sent, received := sha256.New(), sha256.New()
	written := make(chan error, 1)
	random := rand.New(rand.NewSource(time.Now().UnixNano()))
	source := io.TeeReader(random, sent)
	go func() { written <- send(conn, source, middle) }()

	bytes, err := io.CopyN(received, conn, middle)
	if err == nil {
		err = <-written
	}
	if err != nil {
		return event{Event: "ended", Bytes: bytes, Error: text(err)}
	}
	if middle < total {
		tell(event{Event: "middle", Bytes: bytes})
		go func() {
			for commands.Scan() {
				if commands.Text() == "refresh" {
					tell(refresh(network))
					continue
				}
				if commands.Text() == "sign-out" {
					if err := signOut(network); err != nil {
						tell(event{Event: "refused", Error: err.Error()})
					}
					continue
				}
				written <- send(conn, source, total-middle)
				return
			}
		}()
		rest, err := io.CopyN(received, conn, total-middle)
		bytes += rest
		if err != nil {
			return event{Event: "ended", Bytes: bytes, Error: text(err)}
		}
		<-written
	}
	return event{Event: "done", Bytes: bytes, Sent: sum(sent.Sum(nil)), Received: sum(received.Sum(nil))}
}

// refresh renews the API session as the SDK does before its token expires.
func refresh(network ziti.Context) event {
	err := network.(*ziti.ContextImpl).RefreshApiSessionWithBackoff()
	return event{Event: "refreshed", Error: text(err)}
}

// signOut ends the API session, and leaves the connections to routers as they are.
func signOut(network ziti.Context) error {
	client := network.(*ziti.ContextImpl).CtrlClt
	params := current_api_session.NewDeleteCurrentAPISessionParams()
	_, err := client.API.CurrentAPISession.DeleteCurrentAPISession(params, client.GetCurrentApiSession())
	return err
}

func send(conn net.Conn, source io.Reader, bytes int64) error {
	_, err := io.CopyN(conn, source, bytes)
	return err
}

func sum(bytes []byte) string { return hex.EncodeToString(bytes) }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func tell(one event) {
	line, _ := json.Marshal(one)
	fmt.Println(string(line))
}
