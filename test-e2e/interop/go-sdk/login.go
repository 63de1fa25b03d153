package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/openziti/edge-api/rest_client_api_client/current_api_session"
	"github.com/openziti/edge-api/rest_model"
	"github.com/openziti/edge-api/rest_util"
	"github.com/openziti/identity"
	apis "github.com/openziti/sdk-golang/edge-apis"
	"github.com/openziti/sdk-golang/ziti"
)

// login says who logs in, and how.
type login struct {
	Api    string `json:"api"`
	Ca     string `json:"ca"`     // PEM
	Scheme string `json:"scheme"` // "sessions", "oidc", or "announced": the SDK asks the controller

	// One of these.
	Username    string `json:"username"`
	Certificate string `json:"certificate"` // PEM
	Token       string `json:"token"`       // of another issuer

	Password    string `json:"password"`
	Key         string `json:"key"`         // PEM, of the certificate
	SecondToken string `json:"secondToken"` // of another issuer, beside a password or a certificate

	Enroll    bool   `json:"enroll"`    // a second factor, after the login
	Provision string `json:"provision"` // the URL of the second factor, for its code
	Code      string `json:"code"`      // in place of a code of the second factor

	Service string `json:"service"`
}

// visit is what became of a login.
type visit struct {
	Error     string   `json:"error,omitempty"`
	Bearer    bool     `json:"bearer"` // the SDK has an access token instead of a session token
	Asked     bool     `json:"asked"`  // for a code of the second factor
	Provision string   `json:"provision,omitempty"`
	Name      string   `json:"name"`
	Services  []string `json:"services"`
	Routers   int      `json:"routers"` // of the session for the service
	Renewed   bool     `json:"renewed"` // the token changed
	After     string   `json:"after"`   // the answer to the old token after the logout
}

// logIns performs the logins that stdin names, one after the other.
func logIns() error {
	commands := bufio.NewReader(os.Stdin)
	decoder := json.NewDecoder(commands)
	for decoder.More() {
		var one login
		if err := decoder.Decode(&one); err != nil {
			return err
		}
		line, err := json.Marshal(one.inTime())
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}

// inTime performs a login. The SDK would wait for half an hour for tokens that do not come.
func (one *login) inTime() visit {
	done := make(chan visit, 1)
	go func() {
		result, err := one.perform()
		result.Error = text(err)
		done <- result
	}()
	select {
	case result := <-done:
		return result
	case <-time.After(30 * time.Second):
		return visit{Error: "login: no tokens in time"}
	}
}

func (one *login) perform() (visit, error) {
	var result visit
	sdk, err := one.context()
	if err != nil {
		return result, err
	}
	defer sdk.Close()
	sdk.AddZitiMfaHandler(func(_ *rest_model.AuthQueryDetail, answer ziti.MfaCodeResponse) error {
		result.Asked = true
		if one.Code != "" {
			return answer(one.Code)
		}
		if one.Provision == "" {
			return nil
		}
		code, err := codeOf(one.Provision, 1) // the enrollment used up the present one
		if err != nil {
			return err
		}
		return answer(code)
	})
	if err := sdk.Authenticate(); err != nil {
		return result, fmt.Errorf("login: %w", err)
	}
	client := sdk.CtrlClt
	_, result.Bearer = client.GetCurrentApiSession().(*apis.ApiSessionOidc)
	if one.Enroll {
		if result.Provision, err = enrollSecondFactor(sdk); err != nil {
			return result, err
		}
	}
	if err := one.use(client, &result); err != nil {
		return result, err
	}
	return result, leave(client, &result)
}

// context opens the SDK for this login. Each request has a connection of its own.
func (one *login) context() (*ziti.ContextImpl, error) {
	config := &ziti.Config{ZtAPI: one.Api, EnableHa: one.Scheme == "announced"}
	var base *apis.BaseCredentials
	switch {
	case one.Certificate != "":
		credentials := apis.NewIdentityCredentialsFromConfig(identity.Config{
			Key: "pem:" + one.Key, Cert: "pem:" + one.Certificate, CA: "pem:" + one.Ca,
		})
		config.Credentials, base = credentials, &credentials.BaseCredentials
	case one.Token != "":
		credentials := apis.NewJwtCredentials(one.Token)
		config.Credentials, base = credentials, &credentials.BaseCredentials
	default:
		credentials := apis.NewUpdbCredentials(one.Username, one.Password)
		config.Credentials, base = credentials, &credentials.BaseCredentials
	}
	base.CaPool = x509.NewCertPool()
	base.CaPool.AppendCertsFromPEM([]byte(one.Ca))
	if one.SecondToken != "" {
		base.AddJWT(one.SecondToken)
	}
	opened, err := ziti.NewContext(config)
	if err != nil {
		return nil, err
	}
	sdk, ok := opened.(*ziti.ContextImpl)
	if !ok {
		return nil, fmt.Errorf("a context of type %T", opened)
	}
	transportOf(sdk.CtrlClt).DisableKeepAlives = true
	if one.Scheme != "announced" {
		sdk.CtrlClt.SetUseOidc(one.Scheme == "oidc")
	}
	return sdk, nil
}

func enrollSecondFactor(sdk *ziti.ContextImpl) (string, error) {
	detail, err := sdk.EnrollZitiMfa()
	if err != nil {
		return "", fmt.Errorf("enrollment of a second factor: %w", err)
	}
	code, err := codeOf(detail.ProvisioningURL, 0)
	if err != nil {
		return "", err
	}
	if err := sdk.VerifyZitiMfa(code); err != nil {
		return "", fmt.Errorf("verification of a second factor: %w", err)
	}
	return detail.ProvisioningURL, nil
}

// use reads and writes with the token of the login, and with the next one.
func (one *login) use(client *ziti.CtrlClient, result *visit) error {
	for range 2 { // once for each gateway
		self, err := client.GetCurrentIdentity()
		if err != nil {
			return fmt.Errorf("identity: %w", err)
		}
		result.Name = *self.Name
	}
	services, err := client.GetServices()
	if err != nil {
		return fmt.Errorf("services: %w", err)
	}
	for _, service := range services {
		result.Services = append(result.Services, *service.Name)
		if *service.Name != one.Service {
			continue
		}
		if result.Routers, err = openSession(client, *service.ID); err != nil {
			return err
		}
	}
	before := string(client.GetCurrentApiSession().GetToken())
	if _, err := client.Refresh(); err != nil {
		return fmt.Errorf("renewal: %w", err)
	}
	result.Renewed = before != string(client.GetCurrentApiSession().GetToken())
	for range 2 {
		if _, err := client.GetCurrentIdentity(); err != nil {
			return fmt.Errorf("identity with the new token: %w", err)
		}
	}
	return nil
}

// openSession returns how many routers the session has.
func openSession(client *ziti.CtrlClient, serviceId string) (int, error) {
	session, err := client.CreateSession(serviceId, ziti.SessionType(ziti.SessionDial))
	if err != nil {
		return 0, fmt.Errorf("session: %w", err)
	}
	// as the SDK itself tells them apart
	if strings.HasPrefix(*session.Token, apis.JwtTokenPrefix) {
		session, err = client.GetSessionFromJwt(*session.Token)
	} else {
		session, err = client.GetSession(*session.ID)
	}
	if err != nil {
		return 0, fmt.Errorf("read of the session: %w", err)
	}
	return len(session.EdgeRouters), nil
}

// leave logs out. The old token must not be accepted then.
func leave(client *ziti.CtrlClient, result *visit) error {
	session := client.GetCurrentApiSession()
	params := current_api_session.NewDeleteCurrentAPISessionParams()
	if _, err := client.API.CurrentAPISession.DeleteCurrentAPISession(params, session); err != nil {
		return fmt.Errorf("logout: %w", err)
	}
	for range 2 {
		_, err := client.GetCurrentIdentity()
		if err == nil {
			return errors.New("the token is accepted after the logout")
		}
		var refusal *rest_util.APIFormattedError
		if !errors.As(err, &refusal) {
			return fmt.Errorf("after the logout: %w", err)
		}
		result.After = refusal.Code
	}
	if _, err := client.Refresh(); err == nil {
		return errors.New("the token can be renewed after the logout")
	}
	return nil
}

// codeOf returns a code of an authenticator app (RFC 6238), some steps of 30 seconds ahead.
func codeOf(provision string, ahead uint64) (string, error) {
	address, err := url.Parse(provision)
	if err != nil {
		return "", err
	}
	secret, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(address.Query().Get("secret"))
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha1.New, secret)
	if err := binary.Write(mac, binary.BigEndian, uint64(time.Now().Unix())/30+ahead); err != nil {
		return "", err
	}
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[at:])&0x7fffffff%1_000_000), nil
}
