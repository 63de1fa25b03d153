import { controller } from '@overlay/model'
import { type Kind, kind } from '@overlay/platform/kind-store'

export const controllers: Kind = kind(controller)
