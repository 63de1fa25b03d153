import type { Perspective, Selection } from '@overlay/rpc'
import type { Selects } from '@overlay/store/kind-store'
import { noRows } from '@overlay/store/kind-store'
import type { State } from '../domain/state.js'
import { type FarRoles, policiesOf } from '../domain/state-queries.js'
import type { Engine } from '../engine/engine.js'

/**
 * Links that policies make. They are answered as roles, which the owner of the linked kind resolves. `schemas`: where the
 * policies and the entities of this side are rows.
 */
export const selectsOf = (
  engine: Pick<Engine, 'ensureReadable'>,
  schemas: readonly string[],
  links: Readonly<Record<string, (id: string, perspective: Perspective | undefined) => Selection>>,
): Selects =>
  Object.fromEntries(
    Object.entries(links).map(([link, select]) => [
      link,
      async (id, perspective, context) => {
        await engine.ensureReadable(context, schemas)
        return select(id, perspective)
      },
    ]),
  )

/** Service policies that select the entity, of both types unless the perspective names one. */
export function servicePoliciesOf(
  { dial, bind }: State,
  perspective: Perspective | undefined,
  side: 'left' | 'right',
  id: string,
): FarRoles[] {
  const policyType = perspective?.policyType ?? ''
  return [
    ...(policyType === 'bind' ? [] : policiesOf(dial, side, id)),
    ...(policyType === 'dial' ? [] : policiesOf(bind, side, id)),
  ]
}

/** The policies themselves. */
export const policyIds = (policies: readonly FarRoles[]): Selection => ({
  ...noRows,
  ids: policies.map(({ policyId }) => policyId),
})

/** The entities with which the policies link. */
export const farRoles = (policies: readonly FarRoles[]): Selection => ({
  ...noRows,
  roles: policies.map(({ roles, semantic }) => ({ roles: [...roles], semantic })),
})
