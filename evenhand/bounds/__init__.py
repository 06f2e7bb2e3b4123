"""Pure mathematics below audit and certify: sound bounds, the domain they hold on, and confidence bounds."""
