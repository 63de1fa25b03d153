import { createPublicKey, verify, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import { connect } from 'node:tls'
import {
  ctrlType,
  decodeBool,
  EdgeError,
  EnrollmentCertsResponse,
  ExtendRouterRequest,
  ExtendRouterVerifyRequest,
  edgeType,
  HelloFailed,
  headerKey,
  VerifyRouter,
} from '@overlay/channel'
import { fingerprintOf } from '@overlay/x509'
import { X509Certificates } from '@peculiar/x509'
import { accessTokens, refreshed, type Tokens } from './access-tokens.js'
import type { Admin } from './admin.js'
import { type Certificate, openClient, type Server } from './client.js'
import { keyAndRequest, logIn } from './member.js'
import type { RouterIdentity } from './router/identity.js'
import { startRouter, type TestRouter } from './router/router.js'
import { until } from './traffic.js'

const api = '/edge/client/v1'

/** What a client keeps after its enrollment: it trusts the authorities of that time. */
export interface Enrolled {
  readonly id: string
  readonly certificate: Certificate
  readonly caPem: string
}

export interface Password {
  readonly username: string
  readonly password: string
}

/** Servers to which requests go in turn, beginning with another one in each round. */
const inTurn = ({ addresses, caPem }: Server, round: number): Server => {
  const first = round % addresses.length
  return { addresses: [...addresses.slice(first), ...addresses.slice(0, first)], caPem }
}

/** Logs in by a certificate, on new connections. */
export const certificateClient =
  (gateways: readonly string[], { id, certificate, caPem }: Enrolled) =>
  async (round: number): Promise<void> => {
    using session = await logIn(inTurn({ addresses: gateways, caPem }, round), id, certificate)
    await session.services()
  }

/** Logs in by a password, on new connections. */
export const passwordClient = (server: Server, password: Password) => async (round: number) => {
  using client = openClient(inTurn(server, round), api)
  client.use(await tokenOf(server, password))
  await client.request('GET', '/services')
}

async function tokenOf(server: Server, password: Password): Promise<string> {
  using client = openClient(server, api)
  const path = '/authenticate?method=password'
  const { token } = await client.request<{ token: string }>('POST', path, password)
  return token
}

/** Works with the access tokens of one login, and refreshes them. */
export function refreshingClient(server: Server, tokens: Tokens) {
  let current = tokens
  return async (round: number): Promise<void> => {
    const { addresses, caPem } = inTurn(server, round)
    const former = current
    current = await refreshed(addresses, caPem, former)
    for (const { access } of [former, current]) await callWith(access, { addresses, caPem })
  }
}

/** Logs in by OpenID Connect. */
export const openIdClient = (server: Server, password: Password) => async (round: number) => {
  const { addresses, caPem } = inTurn(server, round)
  const { access } = await accessTokens(addresses, caPem, password)
  await callWith(access, { addresses, caPem })
}

async function callWith(access: string, { addresses, caPem }: Server): Promise<void> {
  for (const address of addresses) {
    using client = openClient({ addresses: [address], caPem }, api)
    const answer = await client.call('GET', '/current-identity', undefined, {
      authorization: `Bearer ${access}`,
    })
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
  }
}

/** Sends all its requests on one connection. */
export async function keptConnection({ addresses: [address = ''], caPem }: Server, password: Password) {
  const token = await tokenOf({ addresses: [address], caPem }, password)
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: caPem })
  return async (round: number): Promise<void> => {
    const url = `https://${address}${api}/services`
    const outgoing = httpsRequest(url, { agent, headers: { 'zt-session': token } })
    outgoing.end()
    const [response] = await once(outgoing, 'response')
    const content = await text(response)
    if (response.statusCode !== 200) throw new Error(`${response.statusCode} ${content}`)
    if (round > 0 && !outgoing.reusedSocket) throw new Error('the connection was closed')
  }
}

/** Reads the authorities at each gateway. */
export const bundleReader = (server: Server) => async (round: number) => {
  const { addresses, caPem } = inTurn(server, round)
  for (const address of addresses) await authoritiesAt(address, caPem)
}

/** PEM of what a client trusts that enrolls now. */
export async function authoritiesAt(address: string, caPem: string): Promise<string> {
  using client = openClient({ addresses: [address], caPem }, '')
  const content = await client.request<string>('GET', '/.well-known/est/cacerts')
  const authorities = new X509Certificates(Buffer.from(content, 'base64'))
  if (authorities.length < 2) throw new Error(`${authorities.length} authorities`)
  return authorities.map((authority) => authority.toString('pem')).join('\n')
}

/** An identity that is to enroll. */
export interface Invited {
  readonly id: string
  readonly jwt: string
}

export async function invite(admin: Admin, name: string): Promise<Invited> {
  const id = await admin.create('identities', {
    name,
    type: 'Device',
    isAdmin: false,
    enrollment: { ott: true },
  })
  return { id, jwt: await jwtOf(admin, id) }
}

/** As the API shows it now. */
async function jwtOf(admin: Admin, id: string): Promise<string> {
  const path = `/identities/${id}`
  const { enrollment } = await admin.request<{ enrollment: { ott: { jwt: string } } }>('GET', path)
  return enrollment.ott.jwt
}

/** Whether the certificate that a gateway presents verifies a JWT: SDKs enroll only then. */
export async function isVerifiedAt(address: string, jwt: string): Promise<boolean> {
  const { hostname, port } = new URL(`https://${address}`)
  // the client does not know the authorities yet
  const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const pem = socket.getPeerX509Certificate()?.publicKey.export({ type: 'spki', format: 'pem' }) ?? ''
  socket.destroy()
  const [header, claims, signature = ''] = jwt.split('.')
  const key = createPublicKey(pem)
  return verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))
}

/** Reads an enrollment until gateways verify its JWT. */
export async function verifiedJwtOf(
  admin: Admin,
  identityId: string,
  addresses: readonly string[],
): Promise<string> {
  for (let reads = 0; reads < MAX_READS; reads++) {
    const jwt = await jwtOf(admin, identityId)
    const verified = await Promise.all(addresses.map((address) => isVerifiedAt(address, jwt)))
    if (verified.every(Boolean)) return jwt
  }
  throw new Error('no JWT of the enrollment is verified by the gateways')
}

/** Redeems a verified JWT as SDKs do. */
export async function redeem(address: string, caPem: string, { id, jwt }: Invited): Promise<Enrolled> {
  const { jti } = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())
  const { csr, key } = await keyAndRequest()
  using anonymous = openClient({ addresses: [address], caPem }, api)
  const path = `/enroll?method=ott&token=${jti}`
  const { cert } = await anonymous.request<{ cert: string }>('POST', path, csr)
  return { id, certificate: { key, cert }, caPem: await authoritiesAt(address, caPem) }
}

/** Requests that may meet replicas and gateways of which some know a new key and some do not. */
const MAX_READS = 100

/** Enrolls new identities. A JWT that a gateway does not verify is read again; `onUnverified` is called once. */
export const enrollingClient =
  (admin: Admin, { addresses, caPem }: Server, name: string, onUnverified: () => void) =>
  async (round: number): Promise<void> => {
    const address = addresses[round % addresses.length] ?? ''
    const invited = await invite(admin, `${name}-${round}`)
    if (await isVerifiedAt(address, invited.jwt)) return void (await redeem(address, caPem, invited))
    onUnverified()
    const again = { ...invited, jwt: await verifiedJwtOf(admin, invited.id, [address]) }
    await redeem(address, caPem, again)
  }

/**
 * Connects to all controllers. A replica may learn of a certificate after the one that has issued it: routers connect
 * again.
 */
async function connectEverywhere(options: Parameters<typeof startRouter>[0]): Promise<TestRouter> {
  for (const endMs = performance.now() + 30_000; ; ) {
    const refusals: unknown[] = []
    const router = await startRouter({ ...options, onRefused: (_, err) => refusals.push(err) })
    try {
      await until(() => {
        if (refusals.length > 0) throw refusals[0]
        return router.controllers.all().length === options.controllers.length
      })
      return router
    } catch (err) {
      await router[Symbol.asyncDispose]()
      if (!(err instanceof HelloFailed) || performance.now() > endMs) throw err
    }
  }
}

/** Opens new connections to all controllers, and extends its certificates there. */
export function extendingRouter(enrolled: RouterIdentity, controllers: readonly string[]) {
  let identity = enrolled
  return async (round: number): Promise<void> => {
    let received: (body: Buffer) => void = () => undefined
    const certificates = new Promise<Buffer>((resolve) => {
      received = resolve
    })
    const observe = ({ type, body }: { type: number; body: Buffer }) =>
      void (type === edgeType.enrollmentCerts && received(body))
    await using router = await connectEverywhere({ identity, controllers, listens: false, observe })
    const controller = router.controllers.all()[round % controllers.length]
    const names = [{ type: 'dns' as const, value: 'localhost' }]
    const { csr, key } = await keyAndRequest(identity.id, { names })
    const request = { clientCertCsr: csr, serverCertCsr: csr, requireVerification: true }
    controller?.channel.send({
      type: edgeType.extendRouter,
      body: ExtendRouterRequest.encode(request).finish(),
    })
    const { clientCertPem, serverCertPem } = EnrollmentCertsResponse.decode(await certificates)
    const body = ExtendRouterVerifyRequest.encode({ clientCertPem }).finish()
    const answer = await controller?.channel.request({ type: edgeType.extendRouterVerify, body }, 30_000)
    const { code } = EdgeError.decode(answer?.body ?? new Uint8Array())
    if (code !== '') throw new Error(code)
    identity = { ...identity, client: { key, cert: clientCertPem }, server: { key, cert: serverCertPem } }
  }
}

/** Sends requests over control channels that stay open. */
export function keptRouter({ id, identity, controllers }: TestRouter) {
  const fingerprints = [fingerprintOf(new X509Certificate(identity.client.cert))]
  const body = VerifyRouter.encode({ routerId: id, fingerprints }).finish()
  const channels = controllers.all().map(({ channel }) => channel)
  return async (): Promise<void> => {
    for (const channel of channels) {
      const { headers } = await channel.request({ type: ctrlType.verifyRouter, body }, 30_000)
      const success = headers.get(headerKey.resultSuccess)
      if (!success || !decodeBool(success)) throw new Error('the controller does not know the router')
    }
  }
}
