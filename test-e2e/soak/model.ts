export interface Subject {
  readonly name: string
  attributes: readonly string[]
}

export interface Policy {
  readonly name: string
  readonly type: 'Dial' | 'Bind'
  readonly semantic: 'AnyOf' | 'AllOf'
  identityRoles: readonly string[]
  serviceRoles: readonly string[]
}

/** The entities of one client, as the controller must show them. */
export interface Model {
  readonly identities: Map<string, Subject>
  readonly services: Map<string, Subject>
  readonly policies: Map<string, Policy>
  /** Ids of private configs, by `identity service`. */
  readonly overrides: Map<string, string>
}

export const emptyModel = (): Model => ({
  identities: new Map(),
  services: new Map(),
  policies: new Map(),
  overrides: new Map(),
})

/** Whether a list of roles selects an entity. An id selects with any semantic; an empty list selects nothing. */
export function selects(
  roles: readonly string[],
  semantic: Policy['semantic'],
  id: string,
  attributes: readonly string[],
): boolean {
  if (roles.includes('#all') || roles.includes(`@${id}`)) return true
  const required = roles.filter((role) => role.startsWith('#')).map((role) => role.slice(1))
  if (required.length === 0) return false
  const has = (attribute: string): boolean => attributes.includes(attribute)
  return semantic === 'AllOf' ? required.every(has) : required.some(has)
}

/** Whether a policy, of the type if there is one, lets the identity reach the service. */
export function grants(
  { identities, services, policies }: Pick<Model, 'identities' | 'services' | 'policies'>,
  identityId: string,
  serviceId: string,
  type?: Policy['type'],
): boolean {
  const [identity, service] = [identities.get(identityId), services.get(serviceId)]
  if (!identity || !service) return false
  return [...policies.values()].some(
    (policy) =>
      (type === undefined || policy.type === type) &&
      selects(policy.identityRoles, policy.semantic, identityId, identity.attributes) &&
      selects(policy.serviceRoles, policy.semantic, serviceId, service.attributes),
  )
}

/** Ids of the services that the identity sees, sorted. */
export const visible = (model: Model, identityId: string): string[] =>
  [...model.services.keys()].filter((serviceId) => grants(model, identityId, serviceId)).sort()

export const overrideKey = (identityId: string, serviceId: string): string => `${identityId} ${serviceId}`

/** Deletes an entity with its roles and overrides. */
export function forget(model: Model, kind: 'identities' | 'services', id: string): void {
  model[kind].delete(id)
  const without = (roles: readonly string[]): string[] => roles.filter((role) => role !== `@${id}`)
  for (const policy of model.policies.values()) {
    policy.identityRoles = without(policy.identityRoles)
    policy.serviceRoles = without(policy.serviceRoles)
  }
  for (const key of model.overrides.keys()) if (key.split(' ').includes(id)) model.overrides.delete(key)
}

export interface Row {
  readonly id: string
  readonly name: string
  readonly roleAttributes?: readonly string[] | null
  readonly type?: unknown
  readonly semantic?: Policy['semantic']
  readonly identityRoles?: readonly string[] | null
  readonly serviceRoles?: readonly string[] | null
}

export type ModelKind = 'identities' | 'services' | 'service-policies'

/** Replaces a model by the content of rows. */
export function adopt(model: Model, rows: Readonly<Record<ModelKind, readonly Row[]>>): void {
  for (const kind of ['identities', 'services'] as const) {
    model[kind].clear()
    for (const { id, name, roleAttributes } of rows[kind])
      model[kind].set(id, { name, attributes: roleAttributes ?? [] })
  }
  model.policies.clear()
  for (const { id, name, type, semantic, identityRoles, serviceRoles } of rows['service-policies'])
    model.policies.set(id, {
      name,
      type: type === 'Bind' ? 'Bind' : 'Dial',
      semantic: semantic ?? 'AnyOf',
      identityRoles: identityRoles ?? [],
      serviceRoles: serviceRoles ?? [],
    })
}

/** The differences between rows and model, as texts. Rows in `unsure` are ignored, and roles that name them. */
export function differences(
  model: Model,
  rows: Readonly<Record<ModelKind, readonly Row[]>>,
  unsure: ReadonlySet<string> = new Set(),
): string[] {
  const differing: string[] = []
  const compare = <T extends { readonly name: string }>(
    kind: ModelKind,
    expected: ReadonlyMap<string, T>,
    same: (expected: T, row: Row) => boolean,
  ): void => {
    const byId = new Map(rows[kind].map((row) => [row.id, row]))
    for (const [id, one] of expected) {
      if (unsure.has(id) || unsure.has(one.name)) continue
      const row = byId.get(id)
      if (!row) differing.push(`${kind} ${id} (${one.name}) was acknowledged and is lost`)
      else if (!same(one, row))
        differing.push(`${kind} ${id}: want ${JSON.stringify(one)}, found ${JSON.stringify(row)}`)
    }
    for (const { id, name } of rows[kind])
      if (!expected.has(id) && !unsure.has(id) && !unsure.has(name))
        differing.push(`${kind} ${id} (${name}) was deleted and is back, or was never created`)
  }
  // a deletion of unknown outcome may have removed them
  const sure = (roles: readonly string[] | null | undefined): readonly string[] =>
    (roles ?? []).filter((role) => !unsure.has(role.slice(1)))
  const attributes = (expected: Subject, row: Row) => sameSet(expected.attributes, row.roleAttributes)
  compare('identities', model.identities, attributes)
  compare('services', model.services, attributes)
  compare(
    'service-policies',
    model.policies,
    (expected, row) =>
      sameSet(sure(expected.identityRoles), sure(row.identityRoles)) &&
      sameSet(sure(expected.serviceRoles), sure(row.serviceRoles)),
  )
  return differing
}

export const sameSet = (a: readonly string[], b: readonly string[] | null | undefined): boolean =>
  [...a].sort().join() === [...(b ?? [])].sort().join()
