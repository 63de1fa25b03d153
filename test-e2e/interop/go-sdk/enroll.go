package main

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	apis "github.com/openziti/sdk-golang/edge-apis"
	"github.com/openziti/sdk-golang/ziti"
	"github.com/openziti/sdk-golang/ziti/enroll"
)

// enrollment is a command: to enroll, to log in with what an earlier enrollment has stored, or to go on with the login
// that is open.
type enrollment struct {
	Action string `json:"action"` // "enroll", "login" or "continue"
	Token  string `json:"token"`  // file of the enrollment token, which also names what is stored

	KeyAlg   string `json:"keyAlg"`  // of the key that the SDK makes: "RSA" or "EC"
	KeyFile  string `json:"keyFile"` // in place of a key that the SDK makes
	CertFile string `json:"certFile"`
	Name     string `json:"name"` // that the identity asks for
	Username string `json:"username"`
	Password string `json:"password"`
}

// member is an identity after a command.
type member struct {
	Error    string   `json:"error,omitempty"`
	Name     string   `json:"name"`
	Services []string `json:"services"`
}

// enrolled is what an enrollment has stored, and the login that is open.
type enrolled struct {
	file    []byte
	updb    *apis.UpdbCredentials
	network *ziti.ContextImpl
}

// enrollments performs the commands that stdin names, one after the other.
func enrollments() error {
	decoder := json.NewDecoder(bufio.NewReader(os.Stdin))
	stored := map[string]*enrolled{}
	for decoder.More() {
		var one enrollment
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		result, err := one.perform(stored)
		result.Error = text(err)
		line, err := json.Marshal(result)
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

func (one *enrollment) perform(stored map[string]*enrolled) (member, error) {
	if one.Action == "enroll" {
		self, err := one.enroll()
		if err != nil {
			return member{}, err
		}
		stored[one.Token] = self
	}
	self := stored[one.Token]
	if self == nil {
		return member{}, errors.New("not enrolled")
	}
	if one.Action != "continue" {
		if err := self.logIn(); err != nil {
			return member{}, err
		}
	}
	return self.look()
}

func (one *enrollment) enroll() (*enrolled, error) {
	jwt, err := os.ReadFile(one.Token)
	if err != nil {
		return nil, err
	}
	token, _, err := enroll.ParseToken(string(jwt))
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	flags := enroll.EnrollmentFlags{
		Token: token, KeyFile: one.KeyFile, CertFile: one.CertFile, IDName: one.Name,
		Username: one.Username, Password: one.Password,
	}
	if one.KeyAlg != "" {
		if err := flags.KeyAlg.Set(one.KeyAlg); err != nil {
			return nil, err
		}
	}
	config, err := enroll.Enroll(flags)
	if err != nil {
		return nil, fmt.Errorf("enrollment: %w", err)
	}
	self := &enrolled{}
	if token.EnrollmentMethod == "updb" {
		self.updb = apis.NewUpdbCredentials(one.Username, one.Password)
		self.updb.CaPool = x509.NewCertPool()
		self.updb.CaPool.AppendCertsFromPEM([]byte(strings.TrimPrefix(config.ID.CA, "pem:")))
	}
	self.file, err = json.Marshal(config)
	return self, err
}

// logIn opens a login from what is stored.
func (self *enrolled) logIn() error {
	if self.network != nil {
		self.network.Close()
	}
	config := &ziti.Config{}
	if err := json.Unmarshal(self.file, config); err != nil {
		return err
	}
	if self.updb != nil {
		config.Credentials = self.updb
	}
	opened, err := ziti.NewContext(config)
	if err != nil {
		return err
	}
	self.network = opened.(*ziti.ContextImpl)
	if err := self.network.Authenticate(); err != nil {
		return fmt.Errorf("login: %w", err)
	}
	return nil
}

// look asks over a new connection.
func (self *enrolled) look() (member, error) {
	client := self.network.CtrlClt
	transportOf(client).CloseIdleConnections()
	own, err := client.GetCurrentIdentity()
	if err != nil {
		return member{}, fmt.Errorf("identity: %w", err)
	}
	services, err := client.GetServices()
	if err != nil {
		return member{}, fmt.Errorf("services: %w", err)
	}
	result := member{Name: *own.Name, Services: []string{}}
	for _, service := range services {
		result.Services = append(result.Services, *service.Name)
	}
	return result, nil
}
