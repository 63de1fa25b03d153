import { defineEntity } from '../kernel/entity.js'
import { field } from '../kernel/field.js'
import { reference, texts } from '../kernel/schema.js'

const hidden = { nullable: true, hidden: true } as const

/**
 * A single-use permission to become an identity or a router. Its JWT is signed when it is read. wire: members without a
 * value are not shown.
 */
export const enrollment = defineEntity({
  kind: 'enrollments',
  singular: 'enrollment',
  owner: 'pki',
  ids: 'short',
  followed: true,
  counted: true,
  fields: {
    // wire: no body creates enrollments of routers; they are created with their router
    method: field.oneOf(['ott', 'ottca', 'updb'], { write: 'R--', filter: false }),
    expiresAt: field.datetime({ write: 'R--', filter: false }),
    token: field.string({ write: '---', secret: true }),
    identityId: field.string({ fallback: null, hidden: true, write: 'R--', symbolName: 'identity' }),
    edgeRouterId: field.string({ ...hidden, write: '---', symbolName: 'edgeRouter' }),
    transitRouterId: field.string({ ...hidden, write: '---', symbolName: 'transitRouter' }),
    caId: field.string({ ...hidden, write: 'O--' }),
    username: field.string({ ...hidden, write: 'O--', filter: false }),
  },
  shows: {
    always: texts('jwt', 'method', 'token'),
    sometimes: {
      ...texts('caId', 'edgeRouterId', 'identityId', 'transitRouterId'),
      edgeRouter: reference,
      identity: reference,
      transitRouter: reference,
    },
  },
})
