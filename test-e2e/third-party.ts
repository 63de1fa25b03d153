import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as httpsRequest, type Server } from 'node:https'
import { freePort } from '@overlay/launcher/testing'
import Provider from 'oidc-provider'
import { newAuthority } from './authority.js'

export const AUDIENCE = 'network'

/** A third-party OpenID provider, over https with a certificate of a private authority. */
export interface ThirdParty extends AsyncDisposable {
  readonly issuer: string
  readonly jwksEndpoint: string
  /** PEM of the authority that its address relies on. */
  readonly caPem: string
  /** A token that it issues to the client of this name. */
  tokenOf(client: string): Promise<string>
  /** Signs with another key from now on, and publishes only that one. */
  rotate(): Promise<void>
  leave(): Promise<void>
  comeBack(): Promise<void>
}

const newKey = (): object => ({
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
  kid: randomUUID(),
  alg: 'ES256',
  use: 'sig',
})

const secret = 'secret of the client'

export async function startThirdParty(clients: readonly string[]): Promise<ThirdParty> {
  const [port, authority] = [await freePort(), await newAuthority('third party')]
  const host = await authority.certify('localhost', { dns: 'localhost' })
  const issuer = `https://localhost:${port}`
  const resourceServer = {
    scope: '',
    audience: AUDIENCE,
    accessTokenFormat: 'jwt',
    accessTokenTTL: 600,
    jwt: { sign: { alg: 'ES256' } },
  }
  const provider = (key: object) =>
    new Provider(issuer, {
      jwks: { keys: [key] },
      cookies: { keys: [randomUUID()] },
      clients: clients.map((client_id) => ({
        client_id,
        client_secret: secret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        id_token_signed_response_alg: 'ES256',
      })),
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => 'urn:network',
          useGrantedResource: () => true,
          getResourceServerInfo: () => resourceServer,
        },
      },
    })

  let key = newKey()
  let server: Server | undefined
  async function leave(): Promise<void> {
    server?.closeAllConnections()
    await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)))
    server = undefined
  }
  async function comeBack(): Promise<void> {
    server = createServer(host, provider(key).callback()).listen(port, 'localhost')
    await once(server, 'listening')
  }
  await comeBack()

  return {
    issuer,
    jwksEndpoint: `${issuer}/jwks`,
    caPem: authority.cert,
    async tokenOf(client) {
      const body = 'grant_type=client_credentials'
      const headers = {
        authorization: `Basic ${Buffer.from(`${client}:${encodeURIComponent(secret)}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      }
      const answer = await new Promise<string>((resolve, reject) => {
        const options = { method: 'POST', ca: authority.cert, headers, agent: false } // the server closes connections
        const request = httpsRequest(`${issuer}/token`, options)
        request.on('response', async (response) =>
          resolve(Buffer.concat(await response.toArray()).toString()),
        )
        request.on('error', reject)
        request.end(body)
      })
      const { access_token: token } = JSON.parse(answer) as { readonly access_token?: string }
      if (token === undefined) throw new Error(`no token: ${answer}`)
      return token
    },
    async rotate() {
      await leave()
      key = newKey()
      await comeBack()
    },
    leave,
    comeBack,
    [Symbol.asyncDispose]: leave,
  }
}
