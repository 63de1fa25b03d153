export type { FabricEvent, FabricEvents } from '@overlay/store/change-log'
