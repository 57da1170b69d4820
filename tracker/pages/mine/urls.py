"""URL of what awaits whoever is signed in."""

from django.urls import path

from tracker.pages.mine import views

urlpatterns = [path("mine/", views.mine, name="mine")]
