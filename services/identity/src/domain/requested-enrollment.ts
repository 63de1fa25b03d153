/** The `enrollment` member of an identity's create body. An object is an enrollment as reads show it: no request. */
export interface EnrollmentMember {
  readonly ott?: boolean | object
  readonly ottca?: string | object
  readonly updb?: string | object
}

export type RequestedEnrollment =
  | { readonly method: 'ott' }
  | { readonly method: 'ottca'; readonly caId: string }
  | { readonly method: 'updb'; readonly username: string }

/** wire: of several methods in a body, the first one in the order ott, ottca, updb takes effect. */
export function requestedEnrollment(
  member: EnrollmentMember | null | undefined,
): RequestedEnrollment | undefined {
  const { ott, ottca, updb } = member ?? {}
  if (ott === true) return { method: 'ott' }
  if (ottca && typeof ottca === 'string') return { method: 'ottca', caId: ottca }
  if (updb && typeof updb === 'string') return { method: 'updb', username: updb }
  return undefined
}

/** The enrollment with which an identity was created. Its row keeps the request with the id, and without the token. */
export function promisedEnrollment(
  stored: (EnrollmentMember & { readonly id?: string }) | null,
): (RequestedEnrollment & { readonly id: string }) | undefined {
  const requested = requestedEnrollment(stored)
  return requested && stored?.id ? { ...requested, id: stored.id } : undefined // without its id, it may have ended
}
