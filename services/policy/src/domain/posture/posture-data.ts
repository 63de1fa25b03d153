import { cleanHex } from './posture-check.js'

interface Report {
  /** Of the check that was answered. */
  readonly checkId: string
  readonly at: string
}

export interface ProcessReport extends Report {
  readonly path: string
  readonly isRunning: boolean
  readonly hash: string
  readonly signerFingerprints: readonly string[]
}

/** Of one API session, because it is of one endpoint. */
export interface EndpointState {
  readonly passedMfaAt?: string
  readonly wokenAt?: string
  readonly unlockedAt?: string
}

/** The last reports of an identity's endpoints. wire: the last report of any endpoint replaces those of the others, except MFA and endpoint state. */
export interface PostureData {
  readonly os?: Report & { readonly type: string; readonly version: string }
  readonly domain?: Report & { readonly domain: string }
  readonly mac?: Report & { readonly addresses: readonly string[] }
  readonly processes: readonly ProcessReport[]
  readonly apiSessions: Readonly<Record<string, EndpointState>>
}

export const emptyPosture: PostureData = { processes: [], apiSessions: {} }

/** An answer as a client sends it: the members follow the type. */
export type PostureResponse = { readonly id: string } & (
  | { readonly typeId: 'OS'; readonly type: string; readonly version: string }
  | { readonly typeId: 'DOMAIN'; readonly domain: string }
  | { readonly typeId: 'MAC'; readonly macAddresses: readonly string[] }
  | {
      readonly typeId: 'PROCESS'
      readonly path?: string
      readonly isRunning?: boolean
      readonly hash?: string
      readonly signerFingerprints?: readonly string[]
    }
  | { readonly typeId: 'ENDPOINT_STATE'; readonly woken?: boolean; readonly unlocked?: boolean }
)

export const postureBytes = (data: PostureData): number => Buffer.byteLength(JSON.stringify(data))

/** API sessions of one identity whose state is kept, the newest. They leave room for processes in POSTURE_BUDGET_BYTES. */
const MOST_API_SESSIONS = 300

export function withResponse(
  data: PostureData,
  response: PostureResponse,
  apiSessionId: string,
  at: string,
): PostureData {
  const report = { checkId: response.id, at }
  switch (response.typeId) {
    case 'OS':
      return { ...data, os: { ...report, type: response.type, version: response.version } }
    case 'DOMAIN':
      return { ...data, domain: { ...report, domain: response.domain } }
    case 'MAC':
      return { ...data, mac: { ...report, addresses: response.macAddresses.map(cleanHex) } }
    case 'PROCESS': {
      const { path = '', isRunning = false, hash = '', signerFingerprints = [] } = response
      const rest = data.processes.filter((one) => one.checkId !== response.id || one.path !== path)
      const process = {
        ...report,
        path,
        isRunning,
        hash: cleanHex(hash),
        signerFingerprints: signerFingerprints.map(cleanHex),
      }
      return { ...data, processes: [...rest, process] }
    }
    case 'ENDPOINT_STATE':
      return withEndpoint(data, apiSessionId, (before) => ({
        ...before,
        ...(response.woken && { wokenAt: at }),
        ...(response.unlocked && { unlockedAt: at }),
      }))
  }
}

/** The API session has passed the second factor at this time; null: it must pass it again. */
export const withMfa = (data: PostureData, apiSessionId: string, at: string | null): PostureData =>
  withEndpoint(data, apiSessionId, ({ passedMfaAt: _, ...before }) =>
    at === null ? before : { ...before, passedMfaAt: at },
  )

/** Without the answers to these checks and the state of these API sessions, which exist no more. */
export const withoutEnded = (
  data: PostureData,
  checkIds: ReadonlySet<string>,
  apiSessionIds: ReadonlySet<string>,
): PostureData => ({
  ...data,
  processes: data.processes.filter(({ checkId }) => !checkIds.has(checkId)),
  apiSessions: Object.fromEntries(Object.entries(data.apiSessions).filter(([id]) => !apiSessionIds.has(id))),
})

function withEndpoint(
  data: PostureData,
  apiSessionId: string,
  next: (before: EndpointState) => EndpointState,
): PostureData {
  const { [apiSessionId]: before = {}, ...rest } = data.apiSessions
  const kept = [...Object.entries(rest), [apiSessionId, next(before)] as const].slice(-MOST_API_SESSIONS)
  return { ...data, apiSessions: Object.fromEntries(kept) }
}
