import { randomUUID, webcrypto } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, SignJWT } from 'jose'
import { authority } from './certificates.js'
import { bytes, login, type Replica, system } from './identity.js'

type PrivateKey = webcrypto.CryptoKey

/** A signer of tokens, which an administrator has set up. */
export interface TestSigner {
  readonly id: string
  readonly issuer: string
  readonly kid: string
  readonly privateKey: PrivateKey
}

const AUDIENCE = 'network'

/** Creates a signer whose key is that of a certificate. */
export async function certificateSigner(replica: Replica, more: object = {}): Promise<TestSigner> {
  const { certificate, keys } = await authority('signer')
  const [issuer, kid] = [`https://${randomUUID()}.example`, randomUUID()]
  const body = {
    name: issuer,
    enabled: true,
    issuer,
    audience: AUDIENCE,
    kid,
    certPem: certificate.toString(),
  }
  const { id } = await replica.entities.create(
    { kind: 'external-jwt-signers', json: bytes({ ...body, ...more }) },
    system(),
  )
  return { id, issuer, kid, privateKey: keys.privateKey }
}

export const person = async (replica: Replica, more: object = {}): Promise<string> => {
  const body = { name: randomUUID(), type: 'Default', isAdmin: false, ...more }
  return (await replica.entities.create({ kind: 'identities', json: bytes(body) }, system())).id
}

const nowSeconds = (): number => Math.floor(Date.now() / 1000)

/** A token of the signer, valid for ten minutes. Members that are undefined are left out. */
export function token(
  { issuer, kid, privateKey }: Pick<TestSigner, 'issuer' | 'kid' | 'privateKey'>,
  claims: object,
  header: object = {},
): Promise<string> {
  const [iat, exp] = [nowSeconds(), nowSeconds() + 600]
  return new SignJWT({ iss: issuer, aud: AUDIENCE, iat, exp, ...claims })
    .setProtectedHeader({ alg: 'ES256', kid, ...header })
    .sign(privateKey)
}

export const loginByToken = (replica: Replica, ...bearerTokens: string[]) =>
  replica.identity.authenticate(login({ method: 'ext-jwt', bearerTokens }), system())

/** A provider of keys on the loopback address. */
export interface Provider extends AsyncDisposable {
  readonly endpoint: string
  /** What it answers to the next requests; a set of keys unless replaced. */
  answer: RequestListener
  keys: object[]
  readonly requests: string[]
}

export async function provider(): Promise<Provider> {
  const requests: string[] = []
  const it = {
    keys: [] as object[],
    answer: ((_, response) => response.end(JSON.stringify({ keys: it.keys }))) as RequestListener,
  }
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    it.answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return Object.assign(it, {
    endpoint: `http://127.0.0.1:${port}/keys`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

/** Creates a signer whose keys are at the address. */
export async function publishingSigner(replica: Replica, jwksEndpoint: string, more: object = {}) {
  const issuer = `https://${randomUUID()}.example`
  const body = { name: issuer, enabled: true, issuer, audience: AUDIENCE, jwksEndpoint, ...more }
  const { id } = await replica.entities.create({ kind: 'external-jwt-signers', json: bytes(body) }, system())
  return { id, issuer }
}

/** A new pair of keys, and its public key as providers publish it. */
export async function keyPair(kid: string = randomUUID()) {
  const kind = { name: 'ECDSA', namedCurve: 'P-256' }
  const keys = (await webcrypto.subtle.generateKey(kind, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair
  return { kid, privateKey: keys.privateKey, jwk: { ...(await exportJWK(keys.publicKey)), kid, use: 'sig' } }
}
