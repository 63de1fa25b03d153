import {
  TerminatorValidity,
  type ValidatedRouterTerminator,
  ValidatedRouterTerminators,
} from '@overlay/channel'
import sql from 'sql-template-tag'
import { inspectRouter, objectsIn, orRefused, type RouterCheck, textIn } from './inspect-router.js'

/** The terminators with this binding, as the router and the database have them. */
export const validateRouterTerminators =
  (inspected: string, binding: string): RouterCheck =>
  async (deps, { id: routerId, name: routerName }) => {
    const result = (success: boolean, message: string, details: ValidatedRouterTerminator[]) =>
      ValidatedRouterTerminators.encode({ routerId, routerName, success, message, details }).finish()
    return orRefused(
      async () => {
        const value = (await inspectRouter(deps, routerId, [inspected])).get(inspected)
        if (value === undefined) return result(false, 'no terminator details returned from router', [])
        const { rows } = await deps.changeLog.db.query<{ id: string }>(
          sql`select id from terminator where router_id = ${routerId} and binding = ${binding}`,
        )
        const stored = new Set(rows.map(({ id }) => id))
        const details = objectsIn(value, 'entries').map((entry): ValidatedRouterTerminator => {
          const [terminatorId, routerState] = [textIn(entry, 'id'), textIn(entry, 'state')]
          const isStored = stored.delete(terminatorId)
          return {
            ...{ terminatorId, routerState, operationActive: entry.operationActive === true },
            controllerState: isStored ? TerminatorValidity.VALID : TerminatorValidity.UNKNOWN,
            isValid: isStored && routerState === 'established',
            ...{ createTime: textIn(entry, 'createTime'), lastAttempt: textIn(entry, 'lastAttempt') },
          }
        })
        for (const terminatorId of stored)
          details.push({
            ...{ terminatorId, routerState: 'unknown', controllerState: TerminatorValidity.VALID },
            ...{ isValid: false, operationActive: false, createTime: '', lastAttempt: '' },
          })
        return result(true, '', details)
      },
      (message) => result(false, message, []),
    )
  }
