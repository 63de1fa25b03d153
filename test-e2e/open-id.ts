import { request as httpsRequest } from 'node:https'
import { text } from 'node:stream/consumers'
import * as client from 'openid-client'
import type { Server } from './client.js'

/** A client of the provider: a library that knows nothing of this product. */
export interface OpenIdClient {
  readonly config: client.Configuration
  /** Ids of the gateways that have answered. */
  readonly gateways: Set<string>
  /** One request, on a connection of its own. Redirects are not followed. */
  fetch(url: string, options?: client.CustomFetchOptions): Promise<Response>
}

/** Reads the metadata. Each request has its own connection, which any gateway may accept. */
export async function openIdClient({ addresses, caPem }: Server): Promise<OpenIdClient> {
  const gateways = new Set<string>()
  const fetch: OpenIdClient['fetch'] = (url, { method = 'GET', headers = {}, body } = {} as never) =>
    new Promise((resolve, reject) => {
      const outgoing = httpsRequest(url, { method, headers, ca: caPem, agent: false }, (response) => {
        const { statusCode: status = 0, headers: received } = response
        gateways.add(String(received['ziti-instance-id']))
        const pairs = Object.entries(received).flatMap(([name, value]) =>
          value === undefined ? [] : [[name, String(value)] as [string, string]],
        )
        text(response).then((content) => resolve(new Response(content, { status, headers: pairs })), reject)
      })
      outgoing.on('error', reject)
      outgoing.end(body == null ? undefined : String(body))
    })
  const issuer = new URL(`https://${addresses[0]}/oidc`)
  const config = await client.discovery(issuer, 'native', undefined, client.None(), {
    [client.customFetch]: fetch,
  })
  return { config, gateways, fetch }
}

/** A login that has begun. */
export interface OpenIdLogin {
  readonly url: string
  /** Redeems the code in the address to which the provider leads in the end. */
  redeem(callback: string): Promise<client.TokenEndpointResponse & client.TokenEndpointResponseHelpers>
}

export async function startLogin(
  { config }: OpenIdClient,
  redirectUri: string,
  scope = 'openid profile offline_access',
): Promise<OpenIdLogin> {
  const [verifier, state, nonce] = [
    client.randomPKCECodeVerifier(),
    client.randomState(),
    client.randomNonce(),
  ]
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope,
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
  return {
    url: url.href,
    redeem: (callback) => client.authorizationCodeGrant(config, new URL(callback), checks),
  }
}
