import { identityType } from '@overlay/model'
import { type Kind, kind } from '@overlay/store/kind-store'

export const identityTypes: Kind = kind(identityType)
