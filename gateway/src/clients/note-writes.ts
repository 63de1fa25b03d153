import { identity, type Service } from '@overlay/model'
import {
  type Context,
  EntityServiceService,
  IdentityServiceService,
  type Methods,
  OidcServiceService,
  PkiServiceService,
  PolicyServiceService,
  type Position,
  SessionsServiceService,
} from '@overlay/rpc'
import { byOwner, type Services } from './services.js'

/** Receives the position of each write, with the schema that it belongs to. */
export type NotePosition = (schema: Service, position: Position | undefined, sort?: 'addition') => void

/** The same clients. Each response that carries the position of a write is noted before the caller sees it. */
export const noteWrites = (services: Services, note: NotePosition): Services => ({
  identity: noting(IdentityServiceService, services.identity, 'identity', note),
  oidc: noting(OidcServiceService, services.oidc, 'identity', note),
  pki: noting(PkiServiceService, services.pki, 'pki', note),
  policy: noting(PolicyServiceService, services.policy, 'policy', note),
  sessions: noting(SessionsServiceService, services.sessions, 'sessions', note),
  entitiesOf: byOwner((owner) => noting(EntityServiceService, services.entitiesOf(owner), owner, note)),
  changesOf: services.changesOf,
  auditOf: services.auditOf,
})

interface Definition {
  readonly path: string
  readonly responseStream: boolean
  responseDeserialize(bytes: Buffer): object
}

/** `policy`: its position that has what the write means for posture checks. */
type Method = (
  request: unknown,
  context: Context,
) => Promise<{ readonly position?: Position | undefined; readonly policy?: Position | undefined }>

/** The position in their responses says how fresh an answer is. Noted, it would make other reads wait. */
const reads: ReadonlySet<string> = new Set([
  IdentityServiceService.getApiSession.path,
  IdentityServiceService.checkApiSession.path,
])

export const isNoted = ({ path, responseStream, responseDeserialize }: Definition): boolean =>
  !responseStream && !reads.has(path) && 'position' in responseDeserialize(Buffer.alloc(0))

type CreateRequest = Parameters<Methods<EntityServiceService>['create']>[0]

/** A login, or a new identity: no earlier answer depends on what they add. */
const isAddition = ({ path }: Definition, request: unknown): boolean =>
  path === IdentityServiceService.authenticate.path ||
  (path === EntityServiceService.create.path && addsIdentity(request as CreateRequest))

const addsIdentity = ({ kind, id }: CreateRequest): boolean => kind === identity.kind && id === undefined

function noting<M extends object>(
  definitions: Readonly<Record<string, Definition>>,
  methods: M,
  schema: Service,
  note: NotePosition,
): M {
  const entries = Object.entries(definitions).map(([name, definition]) => {
    const method = methods[name as keyof M] as Method
    if (!isNoted(definition)) return [name, method]
    const noted: Method = async (request, context) => {
      const response = await method(request, context)
      if (isAddition(definition, request)) note(schema, response.position, 'addition')
      else note(schema, response.position)
      if (response.policy) note('policy', response.policy)
      return response
    }
    return [name, noted]
  })
  return Object.fromEntries(entries) as M
}
