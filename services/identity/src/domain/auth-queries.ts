/** The second factor of a session. */
export interface Factors {
  readonly isMfaRequired: boolean
  readonly isMfaComplete: boolean
  /** The signer whose token was presented as the second factor, and is valid. */
  readonly secondSigner: string | null
}

/** What an auth policy demands besides the first factor. */
export interface Demands {
  readonly requireTotp: boolean
  readonly requireExtJwtSigner: string | null
  /** Where clients get a token of that signer. Null: the signer has no address. */
  readonly externalAuthUrl: string | null
}

const totp = {
  format: 'alphaNumeric',
  httpMethod: 'POST',
  httpUrl: './authenticate/mfa',
  maxLength: 6,
  minLength: 4,
  provider: 'ziti',
  typeId: 'MFA',
}

/** What the session has yet to answer. Computed for each answer, so that a change of policy takes effect at once. */
export function authQueriesOf(factors: Factors, demands: Demands): object[] {
  const queries: object[] = []
  if ((factors.isMfaRequired || demands.requireTotp) && !factors.isMfaComplete) queries.push(totp)
  if (demands.requireExtJwtSigner !== null && demands.requireExtJwtSigner !== factors.secondSigner)
    queries.push({ httpUrl: demands.externalAuthUrl ?? '', provider: 'url', typeId: 'EXT-JWT' })
  return queries
}
