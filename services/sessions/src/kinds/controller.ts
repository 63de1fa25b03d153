import { controller } from '@overlay/model'
import { type Kind, kind } from '@overlay/store/kind-store'

export const controllers: Kind = kind(controller)
