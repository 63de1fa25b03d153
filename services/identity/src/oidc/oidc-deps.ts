import type { FabricEvents, WaitForFollowers } from '@overlay/store/change-log'
import type { CredentialFeed } from '../credential-feed/credential-feed.js'
import type { CredentialDeps } from '../credentials/credential-deps.js'
import type { Lifetimes } from '../domain/lifetimes.js'
import type { WaitForConfigTypes } from '../login/wait-for-config-types.js'
import type { SecondFactors } from '../mfa/codes.js'
import type { Tokens } from './tokens.js'

/** What logins by OpenID Connect use. */
export interface OidcDeps extends CredentialDeps {
  /** `https://<address>/oidc` */
  readonly issuer: string
  readonly tokens: Tokens
  readonly credentialFeed: Pick<CredentialFeed, 'deliver'>
  readonly events?: FabricEvents | undefined
  readonly waitForConfigTypes: WaitForConfigTypes
  readonly secondFactors: SecondFactors
  /** The name of the network in authenticator apps. */
  readonly totpIssuer: string
  readonly lifetimes: Lifetimes
  readonly waitForFollowers: WaitForFollowers
}
