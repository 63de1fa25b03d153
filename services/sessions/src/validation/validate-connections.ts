import { ValidatedComponent } from '@overlay/channel'
import { isShowable } from '../domain/router-text.js'
import { MAX_IDENTITY_ID_LENGTH, MOST_CONNECTED, MOST_DIFFERENCES } from '../limits.js'
import { connectedIdentities } from '../store/identity-connection.js'
import { inspectRouter, isObject, objectsIn, orRefused, type RouterCheck } from './inspect-router.js'

const NAME = 'identity-connection-statuses'

/** differs: identities that are shown as connected, and are not, are so for a minute at most; they are no errors. */
export const validateConnections: RouterCheck = async (deps, { id: componentId, name: componentName }) => {
  const result = (success: boolean, errors: string[]) =>
    ValidatedComponent.encode({
      componentType: 'router',
      componentId,
      componentName,
      success,
      errors,
    }).finish()
  if (!deps.presence.isOnline(componentId)) return result(true, [])
  return orRefused(
    async () => {
      const value = (await inspectRouter(deps, componentId, [NAME])).get(NAME)
      const all =
        isObject(value) && isObject(value.identity_connections) ? value.identity_connections : undefined
      if (!all) return result(false, ['the router does not say which identities are connected'])
      const connected = Object.keys(all)
        .slice(0, MOST_CONNECTED)
        .filter(
          (id) =>
            id.length <= MAX_IDENTITY_ID_LENGTH &&
            isShowable(id) &&
            objectsIn(all[id], 'connections').some(({ closed }) => closed !== true),
        )
      const shown = await connectedIdentities(deps.changeLog.db, connected)
      const missing = connected.filter((id) => !shown.has(id))
      const errors = missing
        .slice(0, MOST_DIFFERENCES)
        .map((id) => `router reports identity ${id} connected, but controller disagrees`)
      const others = missing.length - errors.length
      return result(true, others > 0 ? [...errors, `${others} more identities`] : errors)
    },
    (message) => result(false, [message]),
  )
}
