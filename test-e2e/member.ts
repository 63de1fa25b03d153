import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import {
  type JsonGeneralNames,
  PemConverter,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { accessTokens } from './access-tokens.js'
import { type Certificate, type Client, openClient, type Server } from './client.js'

/** A member of the network, logged in by its certificate. */
export interface Member extends Client {
  readonly id: string
  readonly certificate: Certificate
  readonly apiSessionToken: string
  /** Names of the services that it sees. */
  services(): Promise<string[]>
}

const api = '/edge/client/v1'

/** Redeems a one-time token as the SDKs do, and logs in. */
export async function enroll(server: Server, id: string, token: string): Promise<Member> {
  const { csr, key } = await keyAndRequest()
  using anonymous = openClient(server, api)
  const { cert } = await anonymous.request<{ cert: string }>('POST', `/enroll?method=ott&token=${token}`, csr)
  return logIn(server, id, { key, cert })
}

export async function logIn(server: Server, id: string, certificate: Certificate): Promise<Member> {
  const client = openClient(server, api, certificate)
  const { token } = await client.request<{ token: string }>('POST', '/authenticate?method=cert', {})
  return memberOf(client, id, certificate, token)
}

/** The same by OpenID Connect: the token is an access token. */
export async function logInByOpenId(server: Server, id: string, certificate: Certificate): Promise<Member> {
  const { access } = await accessTokens(server.addresses, server.caPem, certificate)
  return memberOf(openClient(server, api, certificate), id, certificate, access)
}

function memberOf(client: Client, id: string, certificate: Certificate, token: string): Member {
  client.use(token)
  return {
    ...client,
    id,
    certificate,
    apiSessionToken: token,
    async services() {
      const services = await client.request<{ name: string }[]>('GET', '/services?limit=500&sort=name')
      return services.map(({ name }) => name)
    },
  }
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
type KeyAlgorithm = webcrypto.EcKeyGenParams | webcrypto.RsaHashedKeyGenParams
const newKeys = async (kind: KeyAlgorithm = algorithm) =>
  (await webcrypto.subtle.generateKey(kind, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
const pemOf = async (key: webcrypto.CryptoKey): Promise<string> =>
  PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')

interface RequestOptions {
  /** Names besides the common one. */
  readonly names?: JsonGeneralNames
  /** The kind of key; P-256 by default. */
  readonly kind?: webcrypto.RsaHashedKeyGenParams
}

/** A key and a request for its certificate, as PEM. */
export async function keyAndRequest(
  commonName = 'member',
  { names, kind }: RequestOptions = {},
): Promise<{ csr: string; key: string }> {
  const keys = await newKeys(kind)
  const extensions = names ? [new SubjectAlternativeNameExtension(names)] : []
  const csr = await Pkcs10CertificateRequestGenerator.create(
    { name: `CN=${commonName}`, keys, signingAlgorithm: kind ?? algorithm, extensions },
    webcrypto,
  )
  return { csr: csr.toString('pem'), key: await pemOf(keys.privateKey) }
}

/** A self-signed certificate. */
export async function ownCertificate(): Promise<Certificate> {
  const keys = await newKeys()
  const cert = await X509CertificateGenerator.createSelfSigned(
    { name: 'CN=stranger', keys, signingAlgorithm: algorithm },
    webcrypto,
  )
  return { cert: cert.toString('pem'), key: await pemOf(keys.privateKey) }
}
