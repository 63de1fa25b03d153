import { expect, test } from 'vitest'
import { roleCaseEntities, roleCases } from '../../testing/role-cases.js'
import { parseRoles, selects } from './roles.js'

test.each(roleCases)('$rule', ({ roles, semantic, selected }) => {
  const found = roleCaseEntities.filter(({ id, roleAttributes }) =>
    selects(parseRoles(roles), semantic, { id, attributes: new Set<string>(roleAttributes) }),
  )
  expect(found.map(({ id }) => id)).toEqual(selected)
})
