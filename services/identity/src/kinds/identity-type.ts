import { identityType } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform/kind-store'

export const identityTypes: Kind = kind(identityType)
